import type { Dialect, Statement } from '../../core/dialect.ts';
import type { ErrorCode } from '../../core/error-codes.ts';
import { describeError, isSvcError, type SvcError } from '../../core/errors.ts';
import { arrangeObjects } from '../../core/migration/arrange-objects.ts';
import type { Migration } from '../../core/migration/migration.ts';
import { compileObject } from '../../core/migration/objects.ts';
import { applyInPlace } from '../../core/schema/apply.ts';
import { dataDependentRisk, dataLossWarnings } from '../../core/schema/data-risks.ts';
import {
  applyToObjects,
  invertObjectOperation,
  isObjectOperation,
  type ObjectModel,
  objectKey,
} from '../../core/schema/database-object.ts';
import { invert, withoutNeedlessDrops } from '../../core/schema/invert.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import { MutableSchema } from '../../core/schema/mutable-schema.ts';
import type { MigrationOperation, ObjectOperation } from '../../core/schema/operation.ts';
import { combinedUnsupported } from '../../core/schema/unsupported-error.ts';

export interface MigrationPart extends Pick<Migration, 'up' | 'down' | 'irreversible' | 'lossy'> {
  readonly statements: readonly Statement[];
  /** Why existing rows may make the migration fail. */
  readonly risks: readonly string[];
  /** Why existing rows may make its rollback fail. */
  readonly rollbackRisks: readonly string[];
}

interface PartBuilder {
  readonly up: MigrationOperation[];
  readonly down: MigrationOperation[];
  /** What `down` does after all else. */
  readonly last: MigrationOperation[];
  readonly lossy: string[];
  readonly risks: string[];
  readonly rollbackRisks: string[];
  readonly statements: Statement[];
  readonly alone: boolean;
  locks: number;
}

/**
 * One migration, or several if a statement cannot run in a transaction with the others, or if one transaction would need
 * more locks than a server holds.
 */
export function splitIntoMigrations(
  operations: readonly MigrationOperation[],
  dialect: Dialect,
  before: SchemaModel,
  present: ObjectModel = new Map(),
): MigrationPart[] {
  const model = new MutableSchema(before);
  const objects = new Map(present);
  const parts: MigrationPart[] = [];
  const created = new Set<string>();
  const { transactionLocks } = dialect.capabilities;
  const refused: SvcError[] = [];
  const compiled = (operation: MigrationOperation): readonly Statement[] => {
    try {
      return isObjectOperation(operation) ? compileObject(dialect, operation) : dialect.compile(operation, model);
    } catch (error) {
      if (!isSvcError(error) || error.code !== 'not_supported') throw error;
      refused.push(error);
      return [];
    }
  };
  let open: PartBuilder | undefined;
  const close = (): void => {
    if (open && refused.length === 0) parts.push(finishPart(open, dialect, model));
    open = undefined;
  };
  for (const operation of operations) {
    const isObject = isObjectOperation(operation);
    const statements = compiled(operation);
    const alone = dialect.capabilities.transactionalDdl && statements.some(({ transactional }) => !transactional);
    const locks = isObject ? 0 : (transactionLocks?.count(operation, model) ?? 0);
    const isFull = transactionLocks !== undefined && open && open.locks + locks > transactionLocks.perMigration;
    if (alone || open?.alone || isFull) close();
    open ??= { up: [], down: [], last: [], lossy: [], risks: [], rollbackRisks: [], statements: [], alone, locks: 0 };
    open.locks += locks;
    open.up.push(operation);
    open.statements.push(...statements);
    if (isObject) {
      const inverse = invertObjectOperation(operation);
      // The server may check the text of a routine against the tables, which `down` has still to change.
      if (isReplacedRoutine(dialect, operation)) open.last.unshift(inverse);
      else open.down.unshift(...arrangedInverse(dialect, inverse, { model, objects }));
      applyToObjects(objects, operation);
      continue;
    }
    const inverse = invert(operation, model);
    open.down.unshift(...inverse);
    open.lossy.push(...dataLossWarnings(operation, model));
    if (operation.type === 'createCollection') created.add(operation.name);
    else if (operation.type !== 'raw' && !created.has(operation.collection)) {
      open.risks.push(...[dataDependentRisk(operation, model)].filter((why) => why !== undefined));
      // A rollback cannot restore the values of a dropped field. Its other risks depend on rows written later.
      const restored = operation.type === 'dropField' ? inverse.filter(({ type }) => type === 'addField') : [];
      open.rollbackRisks.push(...restored.flatMap((one) => dataDependentRisk(one, model) ?? []));
    }
    applyInPlace(model, operation);
  }
  close();
  if (refused.length > 0) throw combinedUnsupported(refused);
  return parts;
}

/** A value that is added to a type in place is removed by another type, to which fields move that others read. */
function arrangedInverse(
  { objects: rules }: Dialect,
  inverse: ObjectOperation,
  { model, objects }: { readonly model: SchemaModel; readonly objects: ObjectModel },
): readonly MigrationOperation[] {
  if (!rules?.movesFields || inverse.type !== 'replaceObject') return [inverse];
  const { kind, name, definition, was } = inverse;
  const [after, before] = [
    { kind, name, definition: was },
    { kind, name, definition },
  ];
  // If the operation moves fields too, what reads them is aside already.
  if (!rules.movesFields(after, before) || rules.movesFields(before, after)) return [inverse];
  return arrangeObjects(rules, [], {
    before: new Map(objects).set(objectKey(after), after),
    after: new Map(objects).set(objectKey(before), before),
    tables: model,
  });
}

/** Whether the operation replaces, in place, an object that does not keep what its body names from being changed. */
function isReplacedRoutine({ objects: rules }: Dialect, operation: ObjectOperation): boolean {
  if (!rules || operation.type !== 'replaceObject') return false;
  const { kind, name, definition, was } = operation;
  const object = { kind, name, definition };
  return rules.boundText(object) !== definition && rules.isReplacedInPlace({ kind, name, definition: was }, object);
}

/** The engine does not support the rollback, or an adopted table was referenced before its adoption. */
const IRREVERSIBLE_CODES: ReadonlySet<ErrorCode> = new Set(['not_supported', 'collection_referenced']);

/** Also compiles the rollback. If that fails, marks the migration as irreversible, with the reason. */
function finishPart(
  { up, down: first, last, lossy, risks, rollbackRisks, statements }: PartBuilder,
  dialect: Dialect,
  after: SchemaModel,
): MigrationPart {
  const down = withoutNeedlessDrops([...first, ...last], after);
  const content = { up, statements, risks, rollbackRisks, ...(lossy.length > 0 && { lossy }) };
  const model = new MutableSchema(after);
  try {
    for (const operation of down) {
      if (isObjectOperation(operation)) {
        compileObject(dialect, operation);
        continue;
      }
      dialect.compile(operation, model);
      applyInPlace(model, operation);
    }
  } catch (error) {
    if (!isSvcError(error) || !IRREVERSIBLE_CODES.has(error.code)) throw error;
    return { ...content, down: [], irreversible: describeError(error) };
  }
  return { ...content, down };
}
