import { SvcError } from '../../core/errors.ts';

/** The options of a channel or broker in `svc.config`, without `type`. */
export type PluginOptions = Readonly<Record<string, unknown>>;

/**
 * Options that are texts. Throws `config_invalid` for one that is missing, empty, not a text or unknown, and for one that is
 * not a URL with one of its `schemes`; the message contains no value. `svc` adds which entry of the configuration it is.
 * @experimental
 */
export function textOptions<Required extends string, Optional extends string = never>(
  options: PluginOptions,
  required: readonly Required[],
  optional: readonly Optional[] = [],
  schemes: { readonly [K in Required | Optional]?: readonly string[] } = {},
): { readonly [K in Required]: string } & { readonly [K in Optional]?: string } {
  const known: readonly string[] = [...required, ...optional];
  const isText = (value: unknown) => typeof value === 'string' && value !== '';
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  const problems = [
    ...required.filter((name) => !isText(options[name])).map((name) => `"${name}" must be a text that is not empty.`),
    ...given
      .filter(([name, value]) => optional.some((one) => one === name) && !isText(value))
      .map(([name]) => `"${name}" must be a text that is not empty, or be omitted.`),
    ...given.filter(([name]) => !known.includes(name)).map(([name]) => `"${name}" is not an option.`),
    ...Object.entries<readonly string[] | undefined>(schemes).flatMap(([name, allowed = []]) =>
      isText(options[name]) && !isUrl(String(options[name]), allowed)
        ? [`"${name}" must start with ${allowed.map((scheme) => `${scheme}://`).join(' or ')}.`]
        : [],
    ),
  ];
  if (problems.length > 0) throw invalidOptions(problems.join(' '), known);
  // Every option was checked above.
  return Object.fromEntries(given) as ReturnType<typeof textOptions<Required, Optional>>;
}

/**
 * The option `url`, with one of these schemes: `urlOption(options, ['nats', 'tls'])`. Throws `config_invalid` as
 * `textOptions` does.
 * @experimental
 */
export function urlOption(options: PluginOptions, schemes: readonly string[]): string {
  return textOptions(options, ['url'], [], { url: schemes }).url;
}

const isUrl = (text: string, schemes: readonly string[]): boolean =>
  URL.canParse(text) && schemes.includes(new URL(text).protocol.slice(0, -1));

const invalidOptions = (why: string, known: readonly string[]): SvcError =>
  new SvcError('config_invalid', 'The options of a plugin in svc.config are invalid.', {
    why,
    next: [`Options: ${known.join(', ')}. One that is read from process.env may not be set.`],
  });
