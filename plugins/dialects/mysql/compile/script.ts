import { tokenize } from './tokens.ts';

/** A text that contains `$$` is ended by more of them. */
function delimiterFor(text: string): string {
  let delimiter = '$$';
  while (text.includes(delimiter)) delimiter += '$';
  return delimiter;
}

/** The client ends a statement at the first semicolon outside of quotes, also in the body of a routine or a trigger. */
export function scriptStatement(text: string): string | undefined {
  const tokens = [...tokenize(text)].filter(({ kind }) => kind !== 'comment');
  const last = tokens.at(-1);
  const ends = last?.text === ';' ? last.at : undefined;
  if (!tokens.some((token) => token.text === ';' && token.at !== ends)) return undefined;
  const body = ends === undefined ? text : `${text.slice(0, ends)}${text.slice(ends + 1)}`;
  const delimiter = delimiterFor(body);
  return `DELIMITER ${delimiter}\n${body.trim()}\n${delimiter}\nDELIMITER ;`;
}
