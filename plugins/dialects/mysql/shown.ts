/** The rest of the line of `SHOW CREATE TABLE` that begins so. */
export function lineOf(beginning: string, table: string): string {
  const line = table.split('\n').find((one) => one.startsWith(`  ${beginning}`)) ?? '';
  return line.slice(beginning.length + 2).replace(/,$/, '');
}

/**
 * A text in which other letters stand for those beyond the Basic Multilingual Plane, and the way back: `SHOW CREATE
 * TABLE` of MySQL has question marks for them.
 */
export function withStandIns(text: string): { readonly text: string; back(shown: string): string } {
  const beyond = [...new Set(text.match(/[\u{10000}-\u{10ffff}]/gu))];
  const standIns = new Map<string, string>();
  for (let code = 0xe000; standIns.size < beyond.length && code < 0xf900; code += 1) {
    const free = String.fromCharCode(code);
    const letter = beyond[standIns.size];
    if (letter !== undefined && !text.includes(free)) standIns.set(letter, free);
  }
  const letters = new Map([...standIns].map(([letter, free]) => [free, letter]));
  return {
    text: text.replace(/[\u{10000}-\u{10ffff}]/gu, (letter) => standIns.get(letter) ?? letter),
    back: (shown) => shown.replace(/[\ue000-\uf8ff]/g, (free) => letters.get(free) ?? free),
  };
}
