import type { TableCopy } from '../../../../core/dialect.ts';
import { type LockEffect, MOMENT } from '../../sql/find-locks.ts';
import type { AlterClause, MysqlStatement } from '../compile/step.ts';

/**
 * What a statement does; `copies` are the table copies of the run, which the server allows no other way for. Source: "Online DDL
 * Operations" in the manual of MySQL, "InnoDB Online DDL" in the one of MariaDB.
 */
export function effectOf({ run }: MysqlStatement, isCopy: boolean): LockEffect {
  if (run.kind === 'fillColumn') return { blocks: 'nothing', work: 'write' };
  if (run.kind === 'checkRows') return { blocks: 'nothing', work: 'read' };
  if (run.kind !== 'alterTable') return MOMENT;
  if (isCopy) return { blocks: run.rejectRows ? 'reads and writes' : 'writes', work: 'write' };
  if (run.rejectRows && !run.rejectRows.online) return { blocks: 'reads and writes', work: 'read' };
  if (run.clauses.some(rebuilds)) return { blocks: 'nothing', work: 'write' };
  return run.clauses.some(readsRows) ? { blocks: 'nothing', work: 'read' } : MOMENT;
}

export const isCopied = (copies: readonly TableCopy[], index: number): boolean =>
  copies.some(({ statement }) => statement === index);

/** The server writes the table again, while others use it. */
const rebuilds = (clause: AlterClause): boolean =>
  clause.kind === 'dropPrimaryKey' ||
  (clause.kind === 'addConstraint' && clause.type === 'primaryKey') ||
  (clause.kind === 'modifyColumn' && (clause.required !== undefined || clause.type !== undefined));

const readsRows = (clause: AlterClause): boolean =>
  clause.kind === 'addIndex' || (clause.kind === 'addConstraint' && clause.type === 'unique');
