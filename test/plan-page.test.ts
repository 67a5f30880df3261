import * as assert from 'node:assert/strict';
import { html } from 'hono/html';
import { renderPlan } from '../config/sdk/callback/plan.tsx';
import { test } from './kit/test.ts';

const plan = { agentTag: 'svc', tool: 'svc_db_migrate' } as const;
const drop = { tag: '20260101_000000_drop', direction: 'up', statements: ['DROP TABLE "a"'], rollback: 'none' };
const place = { environment: 'prd', database: 'main', action: 'migrate', requestedBy: 'ann@laptop' };
const parameters = { ...place, losses: ['<b>a</b> is lost'], warnings: [], migrations: [drop] };
const shown = (request: Partial<Parameters<typeof renderPlan>[0]>): string =>
  String(html`${renderPlan({ ...plan, parameters, ...request })}`);

test('what a plan says is text on its page, and misleading characters are written out', () => {
  assert.match(shown({}), /<li>&lt;b&gt;a&lt;\/b&gt; is lost<\/li>[\s\S]*<pre>DROP TABLE &quot;a&quot;<\/pre>/);
  const hostile = { ...drop, statements: ['SELECT 1;\u202e</pre><script>alert(1)</script>'] };
  const text = shown({ parameters: { ...parameters, migrations: [hostile] } });
  assert.ok(text.includes('\\u{202e}&lt;/pre&gt;&lt;script&gt;'), text);
});

test('the page says what the plan is for, who asks, and from which commit', () => {
  assert.match(shown({}), /<p>migrate main \(prd\), requested by ann@laptop<\/p>/);
  const committed = { ...parameters, commit: '3f2a91c04d17' };
  assert.match(shown({ parameters: committed }), /requested by ann@laptop from commit 3f2a91c04d17<\/p>/);
});

test('a call that is no plan, or does not look like one, is shown as JSON only', () => {
  assert.equal(shown({ agentTag: 'payouts' }), '');
  assert.equal(shown({ tool: 'refund' }), '');
  for (const damaged of [
    {},
    { ...parameters, losses: 'none' },
    { ...parameters, requestedBy: undefined },
    { ...parameters, commit: 7 },
    { ...parameters, warnings: [1] },
    { ...parameters, migrations: [{ ...drop, statements: [null] }] },
    { ...parameters, migrations: [{ ...drop, direction: 'sideways' }] },
    { ...parameters, migrations: [null] },
  ])
    assert.equal(shown({ parameters: damaged as never }), '');
});
