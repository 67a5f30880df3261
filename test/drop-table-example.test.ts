import * as assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { svc } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { LONG } from './kit/project.ts';
import { terminal } from './kit/terminal.ts';
import { test } from './kit/test.ts';

const script = fileURLToPath(new URL('../examples/drop-table/run.ts', import.meta.url));
const WAITS = /waits for approval: apr_[\s\S]*old_orders has 3 rows/;

test(
  'the example of a drop that waits: without a terminal it is approved',
  async () => {
    const { status, stdout, stderr } = await svc([], { cwd: folder(), script });
    assert.equal(status, 0, `${stdout}\n${stderr}`);
    assert.match(stderr, WAITS);
    assert.match(stdout, /apr_\S+ is approved[\s\S]*\[x\]\S* \S+_drop_old_orders/);
  },
  LONG,
);

test(
  'the example of a drop that waits: on a terminal a person decides',
  async () => {
    const screen = terminal([], { cwd: folder(), script });
    await screen.until(/You are Ann[\s\S]*\(y\/N\)/);
    screen.type('y\r');
    assert.equal(await screen.ended, 0, screen.shown());
    assert.match(screen.shown(), WAITS);
    assert.match(screen.shown(), /is approved[\s\S]*\[x\]\S* \S+_drop_old_orders/);
  },
  LONG,
);
