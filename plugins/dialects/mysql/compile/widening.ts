import type { Field } from '../../../../core/schema/model.ts';
import { columnType } from './types.ts';

/** Whether every value of a column fits another type of the server without a change. Types of svc have rules of their own. */
export function isWidening(from: Field, to: Field): boolean {
  if (from.native === to.native) return true;
  const [old, wanted] = [columnType(from, ''), columnType(to, '')];
  if (isLongerList(old, wanted)) return true;
  const before = capacityOf(old);
  const after = capacityOf(wanted);
  return (
    before !== undefined &&
    after !== undefined &&
    before.family === after.family &&
    before.text === after.text &&
    after.low <= before.low &&
    after.high >= before.high
  );
}

/** Whether an enum gets more values at its end. */
function isLongerList(before: string, after: string): boolean {
  const [, known, rest] = /^((?:enum|set)\(.*)(\).*)$/is.exec(before) ?? [];
  return known !== undefined && after.startsWith(`${known},`) && after.endsWith(rest ?? '');
}

interface Capacity {
  readonly family: string;
  readonly low: number;
  readonly high: number;
  /** Character set and collation. */
  readonly text: string;
}

const INTEGER_BITS: Readonly<Record<string, number>> = { tinyint: 8, smallint: 16, mediumint: 24, int: 32, bigint: 64 };
const TEXT_BITS: Readonly<Record<string, number>> = { tiny: 8, '': 16, medium: 24, long: 32 };
/** Their number says how precise or how long they are. */
const SIZED: ReadonlySet<string> = new Set(['char', 'varchar', 'varbinary', 'datetime', 'timestamp', 'time']);

function capacityOf(type: string): Capacity | undefined {
  const [, name = '', size, unsigned, rest = ''] =
    /^(\w+)(?:\((\d+)\))?( unsigned)?(.*)$/s.exec(type.toLowerCase()) ?? [];
  const bits = INTEGER_BITS[name];
  const text = rest.trim();
  if (bits !== undefined && text === '') {
    return unsigned === undefined
      ? { family: 'integer', low: -(2 ** (bits - 1)), high: 2 ** (bits - 1) - 1, text }
      : { family: 'integer', low: 0, high: 2 ** bits - 1, text };
  }
  const [, prefix, kind = ''] = /^(tiny|medium|long)?(text|blob)$/.exec(name) ?? [];
  if (kind !== '') return { family: kind, low: 0, high: TEXT_BITS[prefix ?? ''] ?? 0, text };
  const [, digits, scale] = /^decimal\((\d+),(\d+)\)/.exec(type) ?? [];
  if (digits !== undefined)
    return { family: `decimal ${scale}`, low: 0, high: Number(digits), text: type.replace(/^\S+/, '') };
  return SIZED.has(name) ? { family: name, low: 0, high: Number(size ?? 0), text } : undefined;
}
