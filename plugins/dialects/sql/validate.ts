import { apply } from '../../../core/schema/apply.ts';
import type { SchemaModel } from '../../../core/schema/model.ts';
import { assertNameFits, type NameKind, type NameRules } from '../../../core/schema/names.ts';
import type { Operation } from '../../../core/schema/operation.ts';
import { assertSupported, type UnsupportedFeatures } from '../../../core/schema/unsupported-features.ts';

export interface ValidationRules {
  /** The registered name of the dialect. */
  readonly name: string;
  readonly names: NameRules;
  readonly unsupported: UnsupportedFeatures;
}

/**
 * Validates an operation against the rules of an engine and returns the model after it. Throws `not_supported`,
 * `name_invalid`, and the errors of `apply`.
 */
export function applyValidated(rules: ValidationRules, operation: Operation, before: SchemaModel): SchemaModel {
  assertSupported(rules.name, rules.unsupported, operation, before);
  for (const [kind, name] of newNames(operation)) assertNameFits(rules.name, rules.names, name, kind);
  return apply(before, operation);
}

function newNames(operation: Operation): readonly (readonly [NameKind, string])[] {
  switch (operation.type) {
    case 'createCollection':
      return [
        ['table', operation.name],
        ...operation.fields.map(({ name }) => ['field', name] as const),
        ...(operation.primaryKey ? [['constraint', operation.primaryKey.name] as const] : []),
      ];
    case 'renameCollection':
      return [['table', operation.to]];
    case 'addField':
      return [['field', operation.field.name]];
    case 'renameField':
      return [['field', operation.to]];
    case 'createIndex':
      return [['index', operation.index]];
    case 'addConstraint': {
      const { name } = operation.constraint;
      return name === undefined ? [] : [['constraint', name]];
    }
    case 'dropCollection':
    case 'dropField':
    case 'modifyField':
    case 'dropIndex':
    case 'dropConstraint':
    case 'raw':
      return [];
  }
}

/** Why the tokens are not a single expression; undefined if they are. */
export function tokensProblem(tokens: Iterable<{ readonly kind: string; readonly text: string }>): string | undefined {
  let depth = 0;
  for (const { kind, text } of tokens) {
    if (kind === 'unclosed') return `It has an unclosed ${text}.`;
    if (kind === 'comment' || kind === 'executable') return 'It contains a comment.';
    if (text === ';') return 'It contains a semicolon outside of quotes.';
    depth += text === '(' ? 1 : text === ')' ? -1 : 0;
    if (depth < 0) return 'It has an unmatched closing parenthesis.';
  }
  return depth > 0 ? 'It has an unclosed parenthesis.' : undefined;
}

/** Quoted strings and names, comments, and everything else that can hide the end of an expression. */
const TOKENS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|--|\/\*|[()';"`;]|[^'"`[\]();/-]+|./gs;

/** Why a text is not a single expression of standard SQL; undefined if it is. */
export function expressionProblem(text: string): string | undefined {
  let depth = 0;
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '(') depth += 1;
    if (token === ')') depth -= 1;
    if (depth < 0) return 'It has an unmatched closing parenthesis.';
    if (token === ';') return 'It contains a semicolon outside of quotes.';
    if (token === '--' || token === '/*') return 'It contains a comment.';
    if (token === "'" || token === '"' || token === '`') return `It has an unclosed ${token}.`;
  }
  return depth > 0 ? 'It has an unclosed parenthesis.' : undefined;
}
