import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Reads `.env` beside the configuration; what the environment says already stays as it is. */
export async function loadDotEnv(root: string): Promise<void> {
  const file = join(root, '.env');
  if (!existsSync(file)) return;
  const { config } = await import('dotenv');
  config({ path: file, quiet: true });
}
