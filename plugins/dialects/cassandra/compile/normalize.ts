import type { SchemaModel } from '../../../../core/schema/model.ts';
import { withCatalogDefinition } from './native-index.ts';
import { withCatalogType } from './types.ts';

/** Native types and definitions of indexes in the spelling of the catalog. */
export function normalize(model: SchemaModel): SchemaModel {
  return new Map(
    [...model].map(([name, collection]) => [
      name,
      {
        ...collection,
        fields: new Map([...collection.fields].map(([field, one]) => [field, withCatalogType(one)])),
        indexes: new Map([...collection.indexes].map(([index, one]) => [index, withCatalogDefinition(one)])),
      },
    ]),
  );
}
