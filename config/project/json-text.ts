import type { Node, ParseError } from 'jsonc-parser';
import type { ErrorCode } from '../../core/error-codes.ts';
import { SvcError } from '../../core/errors.ts';
import type { Path } from '../../core/validate-shape.ts';

/** The text of a JSON file, for parsing and for the locations of errors. */
export interface JsonSource {
  /** The path to print. */
  readonly file: string;
  readonly text: string;
  /** The code of errors about this file. */
  readonly code: ErrorCode;
}

/** Parses strict JSON. Comments, trailing commas and duplicate names are errors, with line and column. */
export async function parseJson({ file, text, code }: JsonSource): Promise<unknown> {
  const bare = stripBom(text);
  let value: unknown;
  try {
    value = JSON.parse(bare);
  } catch (error) {
    throw await syntaxError({ file, text: bare, code }, error);
  }
  if (countKeys(value) !== countWrittenKeys(bare)) throw await duplicateKeyError({ file, text: bare, code });
  return value;
}

/** Parses a text that `parseJson` has already accepted. */
export function parseAcceptedJson(text: string): unknown {
  return JSON.parse(stripBom(text));
}

/** `file:line:column` of the value at a path, or of its nearest existing ancestor. */
export async function locationOf({ file, text }: JsonSource, path: Path): Promise<string> {
  const { parseTree, findNodeAtLocation } = await import('jsonc-parser');
  const bare = stripBom(text);
  const root = parseTree(bare);
  for (let length = path.length; root && length > 0; length--) {
    const found = findNodeAtLocation(root, [...path.slice(0, length)]);
    if (!found) continue;
    // The location of a property is that of its name.
    const name = found.parent?.type === 'property' ? found.parent.children?.[0] : undefined;
    return locationAt(file, bare, (name ?? found).offset);
  }
  return root ? locationAt(file, bare, root.offset) : file;
}

function stripBom(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

function locationAt(file: string, text: string, offset: number): string {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf('\n') + 1;
  return `${file}:${before.split('\n').length}:${offset - lineStart + 1}`;
}

function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const members = Object.values(value);
  let count = Array.isArray(value) ? 0 : members.length;
  for (const member of members) count += countKeys(member);
  return count;
}

const STRING = /"(?:[^"\\]|\\.)*"\s*(:?)/g;

/** Counts the property names in the text, including duplicates, which JSON.parse drops. */
function countWrittenKeys(text: string): number {
  let count = 0;
  for (const match of text.matchAll(STRING)) if (match[1] === ':') count += 1;
  return count;
}

const PARSE_ERRORS: Readonly<Record<string, string>> = {
  InvalidSymbol: 'It contains an unknown word.',
  InvalidNumberFormat: 'It contains an invalid number.',
  PropertyNameExpected: 'A name in double quotes is expected.',
  ValueExpected: 'A value is expected.',
  ColonExpected: 'A colon is expected.',
  CommaExpected: 'A comma is expected.',
  CloseBraceExpected: 'A closing } is expected.',
  CloseBracketExpected: 'A closing ] is expected.',
  EndOfFileExpected: 'There is text after the end of the value.',
  InvalidCommentToken: 'Comments are not JSON.',
  UnexpectedEndOfComment: 'Comments are not JSON.',
  UnexpectedEndOfString: 'A string is not closed.',
  UnexpectedEndOfNumber: 'A number is incomplete.',
  InvalidUnicode: 'It contains an invalid Unicode escape.',
  InvalidEscapeCharacter: 'It contains an invalid escape sequence.',
  InvalidCharacter: 'It contains an invalid character.',
};

async function syntaxError({ file, text, code }: JsonSource, cause: unknown): Promise<SvcError> {
  const { parseTree, printParseErrorCode } = await import('jsonc-parser');
  const errors: ParseError[] = [];
  parseTree(text, errors, { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false });
  const first = errors.sort((a, b) => a.offset - b.offset)[0];
  const message = cause instanceof Error ? cause.message : String(cause);
  const trailing = first && /,\s*$/.test(text.slice(0, first.offset)) && /^[}\]]/.test(text.slice(first.offset));
  return new SvcError(code, `${file} is not valid JSON.`, {
    why: trailing
      ? 'JSON does not allow a comma before a closing bracket.'
      : first
        ? (PARSE_ERRORS[printParseErrorCode(first.error)] ?? message)
        : message,
    next: ['Fix the file at this location.'],
    where: first ? locationAt(file, text, first.offset) : file,
    cause,
  });
}

async function duplicateKeyError({ file, text, code }: JsonSource): Promise<SvcError> {
  const { parseTree } = await import('jsonc-parser');
  const root = parseTree(text);
  const duplicate = root && findDuplicateKey(root);
  return new SvcError(code, `${file} has the name ${JSON.stringify(duplicate?.value ?? '')} twice in one object.`, {
    why: 'JSON.parse would silently drop the first one.',
    next: ['Remove one of the two.'],
    where: duplicate ? locationAt(file, text, duplicate.offset) : file,
  });
}

function findDuplicateKey(node: Node): Node | undefined {
  const names = new Set<unknown>();
  for (const child of node.children ?? []) {
    const name = node.type === 'object' ? child.children?.[0] : undefined;
    if (name && names.has(name.value)) return name;
    names.add(name?.value);
    const deeper = findDuplicateKey(child);
    if (deeper) return deeper;
  }
  return undefined;
}

const MAX_WIDTH = 100;

/** Formats JSON compactly: a value that fits on a line is written on one line. */
export function formatJson(value: unknown): string {
  return `${format(value, '')}\n`;
}

function format(value: unknown, indent: string, taken = 0): string {
  const short = formatFlat(value, MAX_WIDTH - indent.length - taken);
  if (short !== undefined && depth(value) <= 2) return short;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => inner + format(item, inner)).join(',\n')}\n${indent}]`;
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const lines = members.map(([key, member]) => {
    const name = `${JSON.stringify(key)}: `;
    return inner + name + format(member, inner, name.length);
  });
  return `{\n${lines.join(',\n')}\n${indent}}`;
}

/** The value on one line; undefined if that is wider. */
function formatFlat(value: unknown, width: number): string | undefined {
  if (typeof value !== 'object' || value === null) return ifFits(JSON.stringify(value), width);
  const isList = Array.isArray(value);
  let text = '';
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined && !isList) continue;
    const name = `${text === '' ? '' : ', '}${isList ? '' : `${JSON.stringify(key)}: `}`;
    const flat = formatFlat(member, width - text.length - name.length);
    if (flat === undefined) return undefined;
    text += name + flat;
  }
  if (isList) return ifFits(`[${text}]`, width);
  return ifFits(text === '' ? '{}' : `{ ${text} }`, width);
}

const ifFits = (text: string, width: number): string | undefined => (text.length <= width ? text : undefined);

/** Nesting of objects; arrays do not count. */
function depth(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const deepest = Math.max(0, ...Object.values(value).map(depth));
  return Array.isArray(value) ? deepest : deepest + 1;
}
