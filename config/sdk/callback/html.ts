/** Markup: in a template it stays as it is, where text is escaped. */
export interface Html {
  readonly markup: string;
}

/** What a template takes: nothing for `undefined` and `false`, everything of a list. */
export type Content = Html | string | number | undefined | false | readonly Content[];

/** A template of HTML. Its values are escaped, for text and for attributes in double quotes. */
export function html(parts: TemplateStringsArray, ...values: readonly Content[]): Html {
  return { markup: parts.map((part, index) => `${part}${markupOf(values[index])}`).join('') };
}

function markupOf(content: Content): string {
  if (content === undefined || content === false) return '';
  if (typeof content !== 'object') {
    return String(content).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
  }
  return 'markup' in content ? content.markup : content.map(markupOf).join('');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
