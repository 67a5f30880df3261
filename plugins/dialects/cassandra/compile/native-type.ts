import { SvcError } from '../../../../core/errors.ts';
import { catalogName, TokenReader } from './tokens.ts';

/** The type of a column as the catalog has it, and whether its value belongs to the partition. */
export interface NativeType {
  readonly type: string;
  readonly isStatic: boolean;
}

/** Reads a native type: one CQL type, and perhaps `static` after it. Undefined if the text is something else. */
export function parseNativeType(text: string): NativeType | undefined {
  const reader = new TokenReader(text);
  const type = readType(reader, false);
  const isStatic = reader.take('static');
  return type !== undefined && reader.isAtEnd ? { type, isStatic } : undefined;
}

const ALIASES: Readonly<Record<string, string | undefined>> = { varchar: 'text' };

/** The server keeps tuples frozen, and prints them so. */
function readType(reader: TokenReader, isFrozen: boolean): string | undefined {
  const token = reader.next();
  if (!token) return undefined;
  // A number is the dimension of a vector, a string the class of a custom type.
  if (token.kind !== 'word' && token.kind !== 'quoted') return token.kind === 'number' ? token.text : undefined;
  const name = catalogName(token);
  if (!reader.take('<')) return ALIASES[name] ?? name;
  const parameters: string[] = [];
  do {
    const parameter = readType(reader, name === 'frozen');
    if (parameter === undefined) return undefined;
    parameters.push(parameter);
  } while (reader.take(','));
  if (!reader.take('>')) return undefined;
  const type = `${name}<${parameters.join(', ')}>`;
  return name === 'tuple' && !isFrozen ? `frozen<${type}>` : type;
}

/** Throws `field_invalid` if the text is not one CQL type. */
export function assertNativeType(native: string, field: string, table: string): NativeType {
  const parsed = parseNativeType(native);
  if (parsed) return parsed;
  throw new SvcError('field_invalid', `The field "${table}.${field}" cannot be used on Cassandra.`, {
    why: `Its native type is not one CQL type, with static after it or not: ${native}`,
    next: ['For example: map<text, frozen<address>>'],
    details: { path: ['native'] },
  });
}

export const nativeText = ({ type, isStatic }: NativeType): string => (isStatic ? `${type} static` : type);
