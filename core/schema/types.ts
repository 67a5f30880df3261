/** The field types of every engine, in the order the documentation lists them. */
export const FIELD_TYPES = [
  'integer',
  'bigint',
  'smallint',
  'float',
  'double',
  'decimal',
  'string',
  'text',
  'boolean',
  'date',
  'time',
  'datetime',
  'timestamp',
  'json',
  'uuid',
  'enum',
  'array',
  'binary',
  'blob',
] as const;

export type FieldType = (typeof FIELD_TYPES)[number];

/** One of them in any case; editors offer them. Any other text is refused where it is used. */
export type FieldTypeName = FieldType | Capitalize<FieldType> | (string & {});

const byLowerCase = new Map<string, FieldType>(FIELD_TYPES.map((type) => [type, type]));

/** The type of that name, without regard to case: schema files write `String`. */
export function fieldType(name: string): FieldType | undefined {
  return byLowerCase.get(name.toLowerCase());
}
