import { mkdirSync, statSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';

/** Where the servers of this machine have their folders: a home directory may be closed to the users that they run as. */
export function temporary(): string {
  const { uid, username } = userInfo();
  const folder = join(tmpdir(), `svc-test-servers-${username}`);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  if (uid >= 0 && statSync(folder).uid !== uid) throw new Error(`${folder} belongs to somebody else`);
  return folder;
}
