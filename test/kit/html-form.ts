import { type DefaultTreeAdapterMap, parse } from 'parse5';

type Node = DefaultTreeAdapterMap['node'];
type Element = DefaultTreeAdapterMap['element'];

/** The form of a page that decides, as a browser without scripts has it. */
export class HtmlForm {
  readonly #fields: Map<string, string>;
  readonly #elements: readonly Element[];

  constructor(page: string) {
    const errors: string[] = [];
    const document = parse(page, {
      onParseError: ({ code, startLine }) => errors.push(`${code} in line ${startLine}`),
    });
    if (errors.length > 0) throw new Error(`The page is not valid HTML: ${errors.join(', ')}`);
    this.elements = elementsOf(document);
    const form = this.elements.filter(({ tagName }) => tagName === 'form').find((one) => hasField(one, 'view'));
    if (!form) throw new Error(`no form in ${page}`);
    this.#elements = elementsOf(form);
    this.#fields = new Map(this.#elements.flatMap(fieldOf));
  }

  /** Of the whole page. */
  readonly elements: readonly Element[];

  get names(): readonly string[] {
    return [...this.#fields.keys()];
  }

  /** The names of the fields with a label, in the order of the page. */
  named(label: string): string[] {
    const labels = this.#elements.filter((one) => one.tagName === 'label' && textOf(one).trim() === label);
    const names = labels.map((one) => attribute(one, 'for')).filter((name) => name !== undefined);
    if (names.length === 0) throw new Error(`no field "${label}"`);
    return names;
  }

  value(name: string): string {
    const value = this.#fields.get(name);
    if (value === undefined) throw new Error(`no field "${name}" in ${this.names}`);
    return value;
  }

  /** Types a text. */
  fill(name: string, text: string): this {
    this.value(name);
    this.#fields.set(name, text);
    return this;
  }

  /** Chooses the option with this text. */
  choose(name: string, option: string): this {
    const select = this.#elements.find((one) => one.tagName === 'select' && attribute(one, 'name') === name);
    const found = select && elementsOf(select).find((one) => one.tagName === 'option' && textOf(one) === option);
    if (!found) throw new Error(`no option "${option}" of ${name}`);
    return this.fill(name, attribute(found, 'value') ?? option);
  }

  /** What a browser sends when the button with this text is pressed. */
  press(button: string): URLSearchParams {
    const found = this.#elements.find((one) => one.tagName === 'button' && textOf(one) === button);
    if (!found) throw new Error(`no button "${button}"`);
    return this.#sent([[attribute(found, 'name') ?? '', attribute(found, 'value') ?? '']]);
  }

  /** As `press`, of the button that Enter presses in a field of one line. */
  pressEnter(): URLSearchParams {
    const found = this.#elements.find(({ tagName }) => tagName === 'button');
    return this.press(found ? textOf(found) : '');
  }

  #sent(more: readonly (readonly [string, string])[]): URLSearchParams {
    const breaks = (text: string) => text.replace(/\r\n?|\n/g, '\r\n').replace(/\p{Surrogate}/gu, '\ufffd');
    const sent = [...this.#fields, ...more].map(([name, value]): [string, string] => [breaks(name), breaks(value)]);
    return new URLSearchParams(sent);
  }
}

function elementsOf(node: Node): Element[] {
  const children = 'childNodes' in node ? node.childNodes : [];
  return children.flatMap((child) => ('tagName' in child ? [child, ...elementsOf(child)] : []));
}

export function attribute({ attrs }: Element, name: string): string | undefined {
  return attrs.find((one) => one.name === name)?.value;
}

export function textOf(node: Node): string {
  if ('value' in node) return node.value;
  return 'childNodes' in node ? node.childNodes.map(textOf).join('') : '';
}

function hasField(form: Element, name: string): boolean {
  return elementsOf(form).some((one) => attribute(one, 'name') === name);
}

function fieldOf(element: Element): [string, string][] {
  const name = attribute(element, 'name');
  if (name === undefined) return [];
  switch (element.tagName) {
    case 'input':
      return [[name, attribute(element, 'value') ?? '']];
    case 'textarea':
      return [[name, textOf(element)]];
    case 'select': {
      const options = elementsOf(element).filter(({ tagName }) => tagName === 'option');
      const selected = options.find((one) => attribute(one, 'selected') !== undefined) ?? options[0];
      return [[name, (selected && attribute(selected, 'value')) ?? '']];
    }
    default:
      return [];
  }
}
