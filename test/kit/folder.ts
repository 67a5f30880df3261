import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const created: string[] = [];
process.on('exit', () => {
  for (const folder of created) rmSync(folder, { recursive: true, force: true });
});

/** A new folder with these files, outside the checkout; removed when the process ends. Objects are written as JSON. */
export function folder(files: Readonly<Record<string, string | object>> = {}): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'svc-test-')));
  created.push(root);
  for (const [name, content] of Object.entries(files)) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`);
  }
  return root;
}
