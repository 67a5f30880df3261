import { shortenText } from '../../../../core/display/text.ts';
import type { JsonSchema } from '../../../../core/tool/json-schema.ts';

const MAX_PATTERN = 100;

/** What values of a kind a schema allows, in sentences for a person. */
export function limitsOf({ kind }: { readonly kind: string }, schema: JsonSchema): readonly string[] {
  switch (kind) {
    case 'number':
      return numberLimits(schema);
    case 'text':
      return textLimits(schema);
    case 'list':
      return [
        ...countLimit('item', schema.minItems, schema.maxItems),
        ...(schema.uniqueItems === true ? ['No item twice.'] : []),
      ];
    default:
      return [];
  }
}

function numberLimits({ minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf }: JsonSchema): string[] {
  const bounds = [
    bound('at least', minimum),
    bound('more than', exclusiveMinimum),
    bound('at most', maximum),
    bound('less than', exclusiveMaximum),
  ].filter((one) => one !== undefined);
  return [
    ...(bounds.length > 0 ? [asSentence(bounds.join(', '))] : []),
    ...(typeof multipleOf === 'number' ? [`A multiple of ${multipleOf}.`] : []),
  ];
}

function textLimits({ minLength, maxLength, pattern }: JsonSchema): string[] {
  const matches = typeof pattern === 'string' ? [`It matches ${shortenText(pattern, MAX_PATTERN).text}.`] : [];
  return [...countLimit('character', minLength, maxLength), ...matches];
}

/** `2 to 5 items.` */
function countLimit(noun: string, least: unknown, most: unknown): string[] {
  const from = typeof least === 'number' && least > 0 ? least : undefined;
  const to = typeof most === 'number' ? most : undefined;
  if (from === undefined && to === undefined) return [];
  const counted = `${noun}${(to ?? from) === 1 ? '' : 's'}`;
  if (from === to) return [`${from} ${counted}.`];
  if (to === undefined) return [`At least ${from} ${counted}.`];
  return [from === undefined ? `At most ${to} ${counted}.` : `${from} to ${to} ${counted}.`];
}

const bound = (words: string, limit: unknown): string | undefined =>
  typeof limit === 'number' ? `${words} ${limit}` : undefined;

const asSentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
