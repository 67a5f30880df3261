import { loadRuntime as load, type Runtime, type RuntimeOptions } from '../../config/load/runtime.ts';
import { type MigrationFile, readMigrations as read } from '../../config/project/migration-files.ts';

const loadSdk = () => import('../../config/sdk/index.ts');

export const loadRuntime = (options: RuntimeOptions = {}): Promise<Runtime> => load(options, loadSdk);

export const readMigrations = (root: string, db: string): Promise<MigrationFile[]> => read(root, db, loadSdk);
