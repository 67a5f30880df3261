/** An identifier. */
export const quote = (name: string): string => `\`${name.replaceAll('`', '``')}\``;

const ESCAPES: Readonly<Record<string, string>> = { "'": "''", '\\': '\\\\', '\0': '\\0', '\x1a': '\\Z' };

/** A string literal; relies on a sql_mode without NO_BACKSLASH_ESCAPES, which the session sets. */
export const text = (value: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: NUL and Ctrl-Z are what has to be found
  `'${value.replace(/['\\\0\x1a]/g, (found) => ESCAPES[found] ?? found)}'`;

/** A text as its bytes: a collation takes another case, accents and spaces at the end for the same. */
export const bytesOf = (value: string): string => `CAST(CONVERT(${value} USING utf8mb4) AS BINARY)`;
