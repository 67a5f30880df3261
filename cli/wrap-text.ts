/** Text as lines of at most `columns` characters, broken at spaces. Without `columns`, as one line. */
export function wrapText(text: string, columns: number | undefined, indent = ''): string[] {
  const words = text.split(' ');
  const lines: string[] = [];
  let line = '';
  for (const word of words) {
    const longer = line === '' ? `${indent}${word}` : `${line} ${word}`;
    if (line !== '' && columns !== undefined && longer.length > columns) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = longer;
  }
  return [...lines, line];
}
