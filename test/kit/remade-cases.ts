/** Definitions of grown databases, one feature each. `@` is the name of the table of the case. */
export type RemadeCases = Readonly<Record<string, string>>;

/** A table for each definition of a column. */
export const columns = (definitions: Readonly<Record<string, string>>): RemadeCases =>
  Object.fromEntries(
    Object.entries(definitions).map(([name, column]) => [name, `create table @ (id int primary key, c ${column})`]),
  );
