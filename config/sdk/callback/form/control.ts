import { displayText } from '../../../../core/display/text.ts';
import { canonicalJson, type Json } from '../../../../core/json.ts';
import type { StoredSchema } from '../../../../core/tool/json-schema.ts';
import type { Path } from '../../../../core/validate-shape.ts';
import type { Field } from './field-type.ts';

/*
 * The controls of a form are built from the schema, the parameters of the request and the fields that were posted, if any.
 * A field is named by indexes, such as `p.2.0`, never by a text of a model; the items of a list keep theirs when others are
 * removed. A field that was not posted, or was posted as its page had it, leaves its value as it is in the request.
 */

/** What a field says of a value: whether it is there. A list has the ids of its items, and a union the index of its variant. */
export const OUT = 'out';
export const NULL = 'null';
export const SET = 'set';

export interface Common {
  /** Of the field, and its id in the page. */
  readonly name: string;
  readonly path: Path;
  readonly label: string;
  readonly hint: string;
  /** Undefined: left out. */
  readonly value: Json | undefined;
  readonly problem?: string | undefined;
  /** The action that removes this item from its list. */
  readonly remove?: string | undefined;
}

interface SelectOption {
  readonly value: string;
  readonly label: string;
}

/** Options with the value of the one that is selected. */
export interface Selection {
  readonly options: readonly SelectOption[];
  readonly selected: string;
}

export interface TextControl extends Common {
  readonly kind: 'text';
  readonly text: string;
  readonly input: 'text' | 'date' | 'decimal' | 'email' | 'url' | 'code';
  /** Whether there is a text, or `null`, or nothing. */
  readonly presence?: Selection | undefined;
}

export interface ChoiceControl extends Common {
  readonly kind: 'choice';
  readonly selection: Selection;
}

/** An object or a list. */
export interface BranchControl extends Common {
  readonly kind: 'branch';
  /** What it consists of: the value of its own, hidden field. */
  readonly marker: string;
  readonly children: readonly Control[];
  readonly buttons: readonly { readonly action: string; readonly label: string }[];
  readonly variants?: Selection | undefined;
}

export type Control = TextControl | ChoiceControl | BranchControl;

/** The place of a value in the form. */
export interface Slot {
  readonly name: string;
  readonly path: Path;
  readonly label: string;
  readonly schema: unknown;
  readonly original: Json | undefined;
  readonly canBeLeftOut: boolean;
  /** It belongs to an object or a list that the request does not have. */
  readonly isNew: boolean;
  /** An item that was added to its list. */
  readonly isAdded?: boolean;
  readonly remove?: string;
}

export interface Source {
  readonly root: StoredSchema;
  readonly fields: URLSearchParams | undefined;
  /** By schema. */
  readonly known: Map<unknown, Field>;
  /** Of controls and options that may still be built. */
  left: number;
}

export const isSame = (one: Json | undefined, other: Json | undefined): boolean =>
  one === undefined || other === undefined ? one === other : canonicalJson(one) === canonicalJson(other);

const MAX_HINT = 500;

/** What every control has. `about`: a text of a model. */
export function common(
  { name, path, label, canBeLeftOut, remove }: Slot,
  { about, limits }: Pick<Field, 'about' | 'limits'>,
  ...own: readonly (string | undefined)[]
) {
  const hint = [...own.filter((text) => text !== undefined), ...limits].join(' ');
  const said = displayText(about.slice(0, 2 * MAX_HINT));
  const cut = said.length > MAX_HINT ? `${said.slice(0, MAX_HINT)}…` : said;
  return {
    name,
    path,
    label: canBeLeftOut ? `${label} (optional)` : label,
    hint: [hint === '' ? cut : asSentence(cut), hint].filter((text) => text !== '').join(' '),
    ...(remove !== undefined && { remove }),
  };
}

const asSentence = (text: string): string => (text === '' || /[.!?:\u2026]$/.test(text) ? text : `${text}.`);
