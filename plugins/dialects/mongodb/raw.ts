import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Raw } from '../../../core/schema/operation.ts';
import { parsedObject, type Validator } from './validator.ts';

/** What a command says beside itself that would make it part of another session or transaction. */
const OURS: ReadonlySet<string> = new Set(['lsid', 'txnNumber', 'autocommit', 'startTransaction', '$clusterTime']);
const TRANSACTIONS: ReadonlySet<string> = new Set([
  'commitTransaction',
  'abortTransaction',
  'endSessions',
  'killSessions',
]);

/** A raw statement is the JSON of a command document; nobody knows whether it may run twice. */
export function compileRaw(operation: Raw): Statement {
  const { statement, check, transaction } = operation;
  if (transaction) {
    throw new SvcError('not_supported', 'A raw command of MongoDB cannot be in a transaction.', {
      why: 'Most commands that change a schema cannot be in one.',
      next: ['Leave "transaction" out.'],
    });
  }
  commandOf(statement);
  if (check !== undefined) commandOf(check);
  return {
    text: `db.runCommand(${statement})`,
    run: { do: 'command', command: statement },
    transactional: false,
    destructive: false,
    ...(check !== undefined && { check }),
  };
}

/** Throws `migration_invalid` for what is no command, or one that would end a session of ours. */
export function commandOf(text: string): Validator {
  const command = parsedObject(text);
  const name = command && Object.keys(command)[0];
  if (!command || name === undefined) {
    throw new SvcError('migration_invalid', 'A raw statement of MongoDB is not a command.', {
      why: 'It is the JSON of a document for runCommand, whose first key is the name of the command.',
      state: 'Nothing was changed.',
      next: ['For example: { "collMod": "users", "validationLevel": "moderate" }'],
    });
  }
  const ours = TRANSACTIONS.has(name) ? name : Object.keys(command).find((key) => OURS.has(key));
  if (ours === undefined) return command;
  throw new SvcError('migration_invalid', `A raw command of MongoDB cannot say "${ours}".`, {
    why: 'Sessions and transactions are kept by svc.',
    state: 'Nothing was changed.',
    next: [`Leave "${ours}" out.`],
  });
}
