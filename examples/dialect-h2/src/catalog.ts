import type { CatalogQueries } from '@svc/sdk/dialect';

const HERE = 'table_schema = CURRENT_SCHEMA';
/** A type with its length or precision, of a column or of the elements of an array. */
const TYPE = `data_type || CASE WHEN data_type ILIKE '% varying' THEN '(' || character_maximum_length || ')'
  WHEN data_type ILIKE 'numeric' THEN '(' || numeric_precision || ', ' || numeric_scale || ')' ELSE '' END`;
const COLUMNS = `SELECT table_name, column_name, column_default, is_nullable, is_identity,
    COALESCE((SELECT ${TYPE} || ' ARRAY' FROM information_schema.element_types e WHERE e.object_schema = c.table_schema
      AND e.object_name = c.table_name AND e.collection_type_identifier = c.dtd_identifier), ${TYPE}) AS data_type,
    (SELECT JSON_ARRAYAGG(value_name ORDER BY value_ordinal) FROM information_schema.enum_values e
      WHERE e.object_schema = c.table_schema AND e.object_name = c.table_name
      AND e.enum_identifier = c.dtd_identifier) AS enum_values
  FROM information_schema.columns c WHERE ${HERE} ORDER BY ordinal_position`;

export const catalog = (only?: string): CatalogQueries => ({
  tables: `SELECT table_name FROM information_schema.tables WHERE ${HERE} AND table_type <> 'VIEW'
    AND ${only === undefined ? "table_name NOT LIKE '\\_svc\\_%'" : `table_name = '${only}'`} ORDER BY table_name`,
  columns: COLUMNS,
  constraints: `SELECT table_name, c.constraint_name, 'CHECK' AS constraint_type, check_clause, column_name
    FROM information_schema.check_constraints c JOIN information_schema.constraint_column_usage u
      ON u.constraint_schema = c.constraint_schema AND u.constraint_name = c.constraint_name WHERE ${HERE}`,
  // `key_column_usage` has the old name of a column that was renamed.
  ...(only === undefined && { keyStatements: 'SCRIPT NODATA' }),
  indexes: `SELECT i.table_name, i.index_name, column_name, index_type_name LIKE '%UNIQUE%' AS is_unique,
      ordering_specification = 'DESC' AS is_descending
    FROM information_schema.indexes i JOIN information_schema.index_columns k
      ON k.index_schema = i.index_schema AND k.table_name = i.table_name AND k.index_name = i.index_name
    WHERE i.table_schema = CURRENT_SCHEMA AND NOT is_generated ORDER BY ordinal_position`,
  unsupported: `SELECT event_object_table AS table_name, 'has the trigger ' || trigger_name AS what
      FROM information_schema.triggers WHERE event_object_schema = CURRENT_SCHEMA
    UNION ALL SELECT NULL, 'has the view ' || table_name FROM information_schema.views WHERE ${HERE}`,
});
