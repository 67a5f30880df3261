import { SvcError } from '../errors.ts';
import { nameInSchema } from './names.ts';

/**
 * Why a name cannot be used where only these schemas are read, the first of which is not written; undefined if it can.
 * `config_invalid` for another schema, `name_invalid` for one that is not needed.
 */
export function listedSchemaError([home = '', ...others]: readonly string[], path: string): SvcError | undefined {
  const name = nameInSchema(path);
  if (name === path) return undefined;
  const schema = path.slice(0, -name.length - 1);
  if (others.includes(schema)) return undefined;
  if (schema !== home) {
    const listed = [home, ...others, schema].map((one) => `'${one}'`).join(', ');
    return new SvcError('config_invalid', `The schema "${schema}" of "${path}" is not one of the database.`, {
      why: 'What is before the first dot of a name is its schema, and svc reads only those that the configuration lists.',
      state: 'Nothing was changed.',
      next: [`List it next to the URL in svc.config: schemas: [${listed}]`],
    });
  }
  if (name.includes('.')) return undefined;
  return new SvcError('name_invalid', `"${path}" cannot be a name.`, {
    why: `"${schema}" is the schema of all names without one.`,
    state: 'Nothing was changed.',
    next: [`Name it "${name}".`],
  });
}
