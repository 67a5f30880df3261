import { SvcError } from '../../../../core/errors.ts';
import type { Raw } from '../../../../core/schema/operation.ts';
import type { MongoStatement } from './step.ts';
import { parseObject, type Validator } from './validator.ts';

/** Options that would make a command part of another session or transaction. */
const SESSION_FIELDS: ReadonlySet<string> = new Set([
  'lsid',
  'txnNumber',
  'autocommit',
  'startTransaction',
  '$clusterTime',
]);
const SESSION_COMMANDS: ReadonlySet<string> = new Set([
  'commitTransaction',
  'abortTransaction',
  'endSessions',
  'killSessions',
]);

/** Compiles the JSON of a command document, which may not be safe to run twice. */
export function compileRaw(operation: Raw): MongoStatement {
  const { statement, check, transaction } = operation;
  if (transaction) {
    throw new SvcError('not_supported', 'A raw command for MongoDB cannot be in a transaction.', {
      why: 'Most commands that change a schema cannot run in a transaction.',
      next: ['Remove "transaction".'],
    });
  }
  parseCommand(statement);
  if (check !== undefined) parseCommand(check);
  return {
    text: `db.runCommand(${statement})`,
    run: { kind: 'raw', command: statement },
    transactional: false,
    destructive: false,
    ...(check !== undefined && { check }),
  };
}

/** Throws `migration_invalid` for anything but a command, and for commands on sessions and transactions. */
export function parseCommand(text: string): Validator {
  const command = parseObject(text);
  const name = command && Object.keys(command)[0];
  if (!command || name === undefined) {
    throw new SvcError('migration_invalid', 'A raw statement for MongoDB is not a command.', {
      why: 'A raw statement is the JSON of a document for runCommand, with the name of the command as its first key.',
      state: 'Nothing was changed.',
      next: ['For example: { "collMod": "users", "validationLevel": "moderate" }'],
    });
  }
  const forbidden = SESSION_COMMANDS.has(name) ? name : Object.keys(command).find((key) => SESSION_FIELDS.has(key));
  if (forbidden === undefined) return command;
  throw new SvcError('migration_invalid', `A raw command for MongoDB cannot contain "${forbidden}".`, {
    why: 'svc manages sessions and transactions.',
    state: 'Nothing was changed.',
    next: [`Remove "${forbidden}".`],
  });
}
