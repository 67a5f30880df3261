const WIDTH = 100;

/** JSON as a person would lay it out: what fits on a line stands on one. */
export function jsonText(value: unknown): string {
  return `${laidOut(value, '')}\n`;
}

function laidOut(value: unknown, indent: string, taken = 0): string {
  const short = flat(value);
  if (indent.length + taken + short.length <= WIDTH && depth(value) <= 2) return short;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => inner + laidOut(item, inner)).join(',\n')}\n${indent}]`;
  }
  if (typeof value !== 'object' || value === null) return short;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const lines = members.map(([key, member]) => {
    const name = `${JSON.stringify(key)}: `;
    return inner + name + laidOut(member, inner, name.length);
  });
  return `{\n${lines.join(',\n')}\n${indent}}`;
}

function flat(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flat).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  if (members.length === 0) return '{}';
  return `{ ${members.map(([key, member]) => `${JSON.stringify(key)}: ${flat(member)}`).join(', ')} }`;
}

/** Objects and arrays inside one another; a list of words counts as none. */
function depth(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const deepest = Math.max(0, ...Object.values(value).map(depth));
  return Array.isArray(value) ? deepest : deepest + 1;
}
