import * as assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { serve } from '@hono/node-server';
import { Webhook } from 'standardwebhooks';
import { approvalHandler } from '../config/sdk/index.ts';
import { scripted } from './kit/cli.ts';
import { docsBlocks } from './kit/docs-blocks.ts';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';
import { freePort } from './suites/free-port.ts';
import { WEBHOOK_SECRET, withGate } from './suites/gate-client.ts';
import { waitUntil } from './suites/wait-until.ts';
import { type HttpRequest, startWebhookReceiver } from './suites/webhook-receiver.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = readFileSync(join(root, 'docs', 'reference', 'approvals.md'), 'utf8');

function block(opening: string): string {
  const found = page.split(`\`\`\`${opening}\n`)[1]?.split('\n```')[0];
  assert.ok(found, `docs/reference/approvals.md has no block "${opening}"`);
  return found;
}

const MINUTE_MS = 60_000;

/** Signs a message as of another time. */
function signedAt(at: Date, id: string, body: string): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(WEBHOOK_SECRET).sign(id, at, body),
  };
}

test('the receiver of the documentation accepts only our webhooks', async () => {
  const port = await freePort();
  const directory = folder({});
  writeFileSync(join(directory, 'receiver.mjs'), block('js receiver.mjs'));
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  const child = spawn(process.execPath, [join(directory, 'receiver.mjs')], {
    env: { ...process.env, OPS_WEBHOOK_SECRET: WEBHOOK_SECRET, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  try {
    const url = `http://127.0.0.1:${port}/`;
    await waitUntil(async () => {
      const forged = await fetch(url, { method: 'POST', body: '{}' }).catch(() => undefined);
      return forged?.status === 401;
    }, 'the receiver does not answer');
    const secrets = { [url]: [WEBHOOK_SECRET] };
    await withGate(
      { approvals: { webhook: { secrets } }, humanInLoop: { approvalWebhook: url } },
      async ({ refund }) => {
        const { request } = await refund();
        await waitUntil(() => output.includes(`/approvals/${request.requestId}/respond?token=`), 'no webhook arrived');
        const body = JSON.stringify({ agentTag: 'payouts', tool: 'refund', callbackUrl: 'a replay' });
        const answered = async (agoMs: number) => {
          const headers = signedAt(new Date(Date.now() - agoMs), request.requestId, body);
          return (await fetch(url, { method: 'POST', headers, body })).status;
        };
        assert.equal(await answered(10 * MINUTE_MS), 401);
        assert.ok(!output.includes('a replay'));
        assert.equal(await answered(0), 204);
      },
    );
  } finally {
    child.kill('SIGKILL');
    rmSync(directory, { recursive: true });
  }
});

/** A program around the function of the documentation in each language: reads `{ secret, headers, body }`, prints true or false. */
const LANGUAGES = [
  {
    name: 'Python',
    command: 'python3',
    version: '--version',
    file: 'verify.py',
    text: () => `${block('python')}
import json, sys
given = json.load(sys.stdin)
print(verified(given["secret"], given["headers"], given["body"].encode()))`,
    run: ['verify.py'],
  },
  {
    name: 'Go',
    command: 'go',
    version: 'version',
    file: 'verify.go',
    text: () => `package main
import ("crypto/hmac"; "crypto/sha256"; "encoding/base64"; "encoding/json"; "fmt"; "math"; "net/http"; "os"; "strconv"; "strings"; "time")
${block('go')}
func main() {
	var given struct { Secret string; Headers map[string]string; Body string }
	json.NewDecoder(os.Stdin).Decode(&given)
	headers := http.Header{}
	for name, value := range given.Headers { headers.Set(name, value) }
	fmt.Println(verified(given.Secret, headers, []byte(given.Body)))
}`,
    run: ['run', 'verify.go'],
  },
] as const;

for (const { name, command, version, file, text, run } of LANGUAGES) {
  const what = `the ${name} of the documentation verifies what is ours and nothing else`;
  if (spawnSync(command, [version]).status !== 0) {
    test.skip(what, `${command} is not installed`);
    continue;
  }
  test(what, async () => {
    const to = await startWebhookReceiver(200);
    const directory = folder({});
    try {
      const secrets = { [to.url]: [WEBHOOK_SECRET] };
      await withGate(
        { approvals: { webhook: { secrets } }, humanInLoop: { approvalWebhook: to.url } },
        async ({ refund }) => {
          await refund();
          await waitUntil(() => to.received.length === 1, 'no webhook arrived');
        },
      );
      const [sent] = to.received as [HttpRequest];
      writeFileSync(join(directory, file), text());
      const verify = (given: { secret?: string; headers?: object; body?: string }): string => {
        const input = JSON.stringify({ secret: WEBHOOK_SECRET, headers: sent.headers, body: sent.body, ...given });
        const { stdout, stderr } = spawnSync(command, run, { cwd: directory, input, encoding: 'utf8' });
        return `${stdout.trim().toLowerCase()}${stderr}`;
      };
      assert.equal(verify({}), 'true');
      assert.equal(verify({ body: sent.body.replace('20', '21') }), 'false');
      assert.equal(verify({ secret: `whsec_${Buffer.alloc(32, 1).toString('base64')}` }), 'false');
      assert.equal(verify({ headers: { ...sent.headers, 'webhook-timestamp': 'x' } }), 'false');
      const id = String(sent.headers['webhook-id']);
      const signed = (agoMs: number) => signedAt(new Date(Date.now() - agoMs), id, sent.body);
      assert.equal(verify({ headers: signed(0) }), 'true');
      assert.equal(verify({ headers: signed(10 * MINUTE_MS) }), 'false', 'ten minutes old');
    } finally {
      to.close();
      rmSync(directory, { recursive: true });
    }
  });
}

const curl = 'the curl command of approve-by-webhook.md decides, with the changed amount';
if (spawnSync('curl', ['--version']).status !== 0) test.skip(curl, 'curl is not installed');
else {
  test(curl, async () => {
    const [command] = docsBlocks().filter(
      ({ page, language }) => page === 'docs/how-to/approve-by-webhook.md' && language === 'sh',
    );
    assert.ok(command);
    const to = await startWebhookReceiver(200);
    const port = await freePort();
    const approvals = {
      callbackBase: `http://127.0.0.1:${port}/svc`,
      webhook: { secrets: { [to.url]: [WEBHOOK_SECRET] } },
    };
    try {
      await withGate({ approvals, humanInLoop: { approvalWebhook: to.url } }, async ({ svc, refund, refunds }) => {
        const server = serve({ fetch: approvalHandler(svc), port, hostname: '127.0.0.1' });
        try {
          const { outcome } = await refund();
          await waitUntil(() => to.received.length === 1, 'no webhook arrived');
          const { callbackUrl } = JSON.parse(to.received[0]?.body ?? '');
          const env = { ...process.env, callbackUrl, NO_PROXY: '127.0.0.1' };
          const { stdout } = await promisify(execFile)('sh', ['-ec', command.text], { env });
          assert.equal(JSON.parse(stdout).status, 'approved');
          assert.equal((await outcome).status, 'completed');
          assert.equal(JSON.stringify(refunds), '[{"orderId":"1234","amount":15}]');
        } finally {
          server.close();
        }
      });
    } finally {
      to.close();
    }
  });
}

test('the example approval-endpoint runs', () => {
  const [node, ...args] = scripted(join(root, 'examples', 'approval-endpoint', 'run.ts'));
  const { status, stdout, stderr } = spawnSync(node, args, { cwd: root, encoding: 'utf8', timeout: 60_000 });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /completed: paid 15 EUR for order 1234, approved by ada@shop.example/);
});
