import * as assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { svc } from './kit/cli.ts';
import { folder } from './kit/folder.ts';
import { LONG } from './kit/project.ts';
import { test } from './kit/test.ts';

const script = fileURLToPath(new URL('../examples/ai-sdk/run.ts', import.meta.url));

test(
  'the example of an agent that is killed while its call waits: another process continues, and it pays once',
  async () => {
    const { status, stdout, stderr } = await svc([], { cwd: folder(), script });
    const shown = `${stdout}\n${stderr}`;
    assert.equal(status, 0, shown);
    const [before = '', after = '', ...more] = stdout.split('Ann approves');
    assert.deepEqual(more, []);
    assert.match(before, /waits for approval: apr_\S+.*ended: SIGKILL/s, shown);
    assert.doesNotMatch(before, /Paid/, shown);
    assert.match(after, /Paid 15 EUR.*A reviewer changed.*Sent to ada@example.com.*ended: exit status 0/s, shown);
    assert.doesNotMatch(after, /waits for approval/, shown);
    assert.match(after, /payments.txt:\n15 EUR for order 1234\n$/, shown);
  },
  LONG,
);
