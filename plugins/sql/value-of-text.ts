import type { Json } from '../../core/json.ts';
import type { FieldType } from '../../core/schema/types.ts';

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'true']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'false']);

/** A value of the type from the text that a catalog has of it; undefined where it is none. Arrays are told by each engine in its own way. */
export function valueOfText(text: string, type: Exclude<FieldType, 'array'>): Json | undefined {
  switch (type) {
    case 'smallint':
    case 'integer':
    case 'bigint':
      if (!/^-?\d+$/.test(text)) return undefined;
      return Number.isSafeInteger(Number(text)) ? Number(text) : text;
    case 'float':
    case 'double':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined;
    case 'decimal':
      return /^-?\d+(\.\d+)?$/.test(text) ? text : undefined;
    case 'boolean':
      return TRUE.has(text) ? true : FALSE.has(text) ? false : undefined;
    case 'json':
      return parsedJson(text);
    case 'binary':
    case 'blob':
      return undefined;
    default:
      return text;
  }
}

export function parsedJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
