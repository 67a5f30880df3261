import type { Document } from 'mongodb';
import type { DatabaseObject } from '../../../../core/schema/database-object.ts';
import type { Validator } from '../compile/validator.ts';
import { isSameView, viewText } from '../compile/views.ts';
import { type MongoServer, toExtendedJson } from '../connection/server.ts';

/** The views of the database, without those of the server. */
export async function readViews(server: MongoServer): Promise<DatabaseObject[]> {
  const listed = (await server.db.listCollections({ type: 'view' }).toArray()) as Document[];
  return listed
    .filter(({ name }) => !/^(_svc_|system\.)/.test(String(name)))
    .sort((a, b) => (String(a.name) < String(b.name) ? -1 : 1))
    .map(({ name, options = {} }) => {
      const { collation: { version: _, ...collation } = {}, ...others } = options;
      const plain = { ...others, ...(Object.keys(collation).length > 0 && { collation }) };
      return {
        kind: 'view',
        name: String(name),
        definition: viewText(String(name), toExtendedJson(server, plain) as Validator),
      };
    });
}

/** The text of the catalog, if the texts create the same view. */
export async function normalizeViews(
  server: MongoServer,
  objects: readonly DatabaseObject[],
): Promise<readonly DatabaseObject[]> {
  const found = new Map((await readViews(server)).map((view) => [view.name, view]));
  return objects.map((object) => {
    const other = found.get(object.name);
    return other && isSameView(other.definition, object.definition) ? other : object;
  });
}
