import * as assert from 'node:assert/strict';
import { parametersForm } from '../config/sdk/callback/form/parameters-form.tsx';
import { storedValidator } from '../core/tool/input-schema.ts';
import type { StoredSchema } from '../core/tool/json-schema.ts';
import type { ToolParameters } from '../core/tool/parameters.ts';
import { FormUnderTest } from './kit/parameters-form.ts';
import { test } from './kit/test.ts';

const text = { type: 'string' };
const integer = { type: 'integer' };
const texts = { type: 'array', items: text };
const tool = (properties: object, required: readonly string[], more: object = {}) => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties,
  required,
  additionalProperties: false,
  ...more,
});

/** Tools as people and generators describe them: a call, what a reviewer types by label, and what then changes. */
const TOOLS: Readonly<
  Record<string, readonly [schema: object, call: object, typed: Record<string, string>, changes: object]>
> = {
  'filesystem write_file': [
    tool({ path: text, content: text }, ['path', 'content']),
    { path: '/srv/a.txt', content: '\nline 1\r\nline 2\r\n' },
    { path: '/srv/b.txt' },
    { path: '/srv/b.txt' },
  ],
  'filesystem edit_file': [
    tool(
      {
        path: text,
        edits: {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              oldText: { type: 'string', description: 'Text to search for - must match exactly' },
              newText: { type: 'string', description: 'Text to replace with' },
            },
            required: ['oldText', 'newText'],
            additionalProperties: false,
          },
        },
        dryRun: { type: 'boolean', default: false, description: 'Preview changes using git-style diff format' },
      },
      ['path', 'edits'],
    ),
    { path: 'a.ts', edits: [{ oldText: '\tlet a;', newText: '\tconst a = 1;\n' }], dryRun: false },
    { newText: 'const b = 2;' },
    { edits: [{ oldText: '\tlet a;', newText: 'const b = 2;' }] },
  ],
  'github create_issue': [
    tool(
      {
        owner: text,
        repo: text,
        title: text,
        body: text,
        assignees: texts,
        milestone: { type: 'number' },
        labels: texts,
      },
      ['owner', 'repo', 'title'],
    ),
    { owner: 'acme', repo: 'shop', title: 'It fails', labels: ['bug', 'p1'] },
    { 'milestone (optional)': '7', 'labels 2': 'p2' },
    { milestone: 7, labels: ['bug', 'p2'] },
  ],
  'github create_or_update_file': [
    tool({ owner: text, repo: text, path: text, content: text, message: text, branch: text, sha: text }, [
      'owner',
      'repo',
      'path',
      'content',
      'message',
      'branch',
    ]),
    { owner: 'a', repo: 'b', path: 'README.md', content: '# T\n', message: 'Add', branch: 'main' },
    { branch: 'next' },
    { branch: 'next' },
  ],
  'slack post_message': [
    tool({ channel_id: text, text: { type: 'string', description: 'The message text to post' } }, [
      'channel_id',
      'text',
    ]),
    { channel_id: 'C024BE91L', text: 'Deployed 🎉 <@U1> & done' },
    { text: '007' },
    { text: '007' },
  ],
  'postgres query': [
    tool({ sql: text, params: { type: 'array', items: {} } }, ['sql']),
    { sql: "DELETE FROM orders\n WHERE note = 'x'", params: [1, 'a', null] },
    { 'params 1': '"1"' },
    { params: ['1', 'a', null] },
  ],
  'sqlite write_query': [
    tool({ query: { type: 'string', title: 'Query' } }, ['query'], { title: 'write_queryArguments' }),
    { query: 'UPDATE a SET b = 1' },
    { query: 'UPDATE a SET b = 2' },
    { query: 'UPDATE a SET b = 2' },
  ],
  'stripe create_refund': [
    tool(
      {
        payment_intent: text,
        amount: { type: 'integer', minimum: 1 },
        reason: { type: 'string', enum: ['duplicate', 'fraudulent', 'requested_by_customer'] },
        metadata: { type: 'object', additionalProperties: { type: 'string' } },
      },
      ['payment_intent'],
    ),
    { payment_intent: 'pi_3M', amount: 5000, metadata: { ticket: '42' } },
    { amount: '2.5e3', metadata: '{"ticket":"43"}' },
    { amount: 2500, metadata: { ticket: '43' } },
  ],
  'stripe create_payment_link': [
    tool({ price: text, quantity: integer, redirect_url: { type: 'string', format: 'uri' } }, ['price', 'quantity']),
    { price: 'price_1', quantity: 1 },
    { 'redirect_url (optional)': 'https://shop.example/thanks' },
    { redirect_url: 'https://shop.example/thanks' },
  ],
  'brave web_search': [
    tool({ query: text, count: { type: 'number', default: 10 }, offset: { type: 'number', default: 0 } }, ['query']),
    { query: 'svc', count: 10, offset: 0 },
    { count: '20' },
    { count: 20 },
  ],
  'calendar create_event': [
    tool(
      {
        summary: text,
        start: { type: 'object', properties: { dateTime: { type: 'string', format: 'date-time' }, timeZone: text } },
        end: { type: 'object', properties: { dateTime: { type: 'string', format: 'date-time' }, timeZone: text } },
        attendees: {
          type: 'array',
          items: { type: 'object', properties: { email: { type: 'string', format: 'email' } }, required: ['email'] },
        },
      },
      ['summary', 'start', 'end'],
    ),
    {
      summary: 'Review',
      start: { dateTime: '2026-11-28T09:30:00+01:00' },
      end: { dateTime: '2026-11-28T10:30:00+01:00' },
      attendees: [{ email: 'ann@acme.example' }],
    },
    { email: 'bo@acme.example', 'dateTime (optional)': '2026-11-28T09:00:00+01:00' },
    { attendees: [{ email: 'bo@acme.example' }], start: { dateTime: '2026-11-28T09:00:00+01:00' } },
  ],
  'notion create_page': [
    {
      type: 'object',
      properties: {
        parent: {
          oneOf: [
            {
              type: 'object',
              properties: { type: { const: 'page_id' }, page_id: text },
              required: ['type', 'page_id'],
            },
            { type: 'object', properties: { type: { const: 'workspace' } }, required: ['type'] },
          ],
        },
        properties: { type: 'object' },
      },
      required: ['parent'],
    },
    { parent: { type: 'page_id', page_id: 'p1' }, properties: { title: [{ text: { content: 'A' } }] } },
    { page_id: 'p2' },
    { parent: { type: 'page_id', page_id: 'p2' } },
  ],
  'pydantic optional': [
    {
      $defs: {
        Color: { enum: ['red', 'green'], title: 'Color', type: 'string' },
        Size: { properties: { w: integer }, required: ['w'], title: 'Size', type: 'object' },
      },
      properties: {
        color: { allOf: [{ $ref: '#/$defs/Color' }], default: 'red' },
        size: { anyOf: [{ $ref: '#/$defs/Size' }, { type: 'null' }], default: null },
        note: { anyOf: [{ type: 'string' }, { type: 'null' }], default: null, title: 'Note' },
      },
      title: 'Args',
      type: 'object',
    },
    { color: 'red', size: { w: 3 }, note: null },
    { w: '4', note: 'x' },
    { size: { w: 4 }, note: 'x' },
  ],
  'pydantic discriminated': [
    {
      $defs: {
        Cat: {
          properties: { pet: { const: 'cat', title: 'Pet', type: 'string' }, lives: integer },
          required: ['pet', 'lives'],
          type: 'object',
        },
        Dog: {
          properties: { pet: { const: 'dog', title: 'Pet', type: 'string' }, name: text },
          required: ['pet', 'name'],
          type: 'object',
        },
      },
      properties: {
        pet: {
          discriminator: { mapping: { cat: '#/$defs/Cat', dog: '#/$defs/Dog' }, propertyName: 'pet' },
          oneOf: [{ $ref: '#/$defs/Cat' }, { $ref: '#/$defs/Dog' }],
        },
      },
      required: ['pet'],
      type: 'object',
    },
    { pet: { pet: 'cat', lives: 9 } },
    { lives: '8' },
    { pet: { pet: 'cat', lives: 8 } },
  ],
  'puppeteer navigate': [
    tool(
      {
        url: text,
        launchOptions: { type: 'object', description: 'PuppeteerJS LaunchOptions.' },
        allowDangerous: { type: 'boolean' },
      },
      ['url'],
    ),
    { url: 'https://acme.example', launchOptions: { headless: true } },
    { launchOptions: '{"headless":false}' },
    { launchOptions: { headless: false } },
  ],
  'memory create_entities': [
    tool(
      {
        entities: {
          type: 'array',
          items: {
            type: 'object',
            properties: { name: text, entityType: text, observations: texts },
            required: ['name', 'entityType', 'observations'],
          },
        },
      },
      ['entities'],
    ),
    { entities: [{ name: 'A', entityType: 'person', observations: ['tall'] }] },
    { 'observations 1': 'short' },
    { entities: [{ name: 'A', entityType: 'person', observations: ['short'] }] },
  ],
  'sequential thinking': [
    tool(
      {
        thought: text,
        nextThoughtNeeded: { type: 'boolean' },
        thoughtNumber: { type: 'integer', minimum: 1 },
        totalThoughts: { type: 'integer', minimum: 1 },
        isRevision: { type: 'boolean' },
      },
      ['thought', 'nextThoughtNeeded', 'thoughtNumber', 'totalThoughts'],
    ),
    { thought: 'Hm', nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 3 },
    { totalThoughts: '5' },
    { totalThoughts: 5 },
  ],
  'gmail send_email': [
    tool(
      {
        to: texts,
        cc: texts,
        subject: text,
        body: text,
        mimeType: { type: 'string', enum: ['text/plain', 'text/html'], default: 'text/plain' },
      },
      ['to', 'subject', 'body'],
    ),
    { to: ['ann@acme.example'], subject: 'Hello', body: 'Dear Ann,\r\n\r\nBye', mimeType: 'text/plain' },
    { body: 'Dear Ann,\r\n\r\nSee you' },
    { body: 'Dear Ann,\r\n\r\nSee you' },
  ],
  'linear create_issue': [
    tool(
      {
        title: text,
        teamId: text,
        priority: { type: 'number', enum: [0, 1, 2, 3, 4] },
        estimate: { type: ['number', 'null'] },
      },
      ['title', 'teamId'],
    ),
    { title: 'T', teamId: 't1', priority: 0, estimate: null },
    { estimate: '0.5' },
    { estimate: 0.5 },
  ],
  'kubernetes scale': [
    tool(
      {
        name: text,
        namespace: { type: 'string', default: 'default' },
        replicas: { type: 'integer', minimum: 0 },
        resourceType: { const: 'deployment' },
      },
      ['name', 'replicas'],
    ),
    { name: 'web', namespace: 'prod', replicas: 0, resourceType: 'deployment' },
    { replicas: '3' },
    { replicas: 3 },
  ],
  'aws s3 delete_objects': [
    tool(
      {
        Bucket: text,
        Delete: {
          type: 'object',
          properties: {
            Objects: {
              type: 'array',
              items: { type: 'object', properties: { Key: text, VersionId: text }, required: ['Key'] },
            },
            Quiet: { type: 'boolean' },
          },
          required: ['Objects'],
        },
      },
      ['Bucket', 'Delete'],
    ),
    { Bucket: 'b', Delete: { Objects: [{ Key: 'k1' }, { Key: 'k2', VersionId: 'v' }] } },
    { Key: 'k3' },
    { Delete: { Objects: [{ Key: 'k3' }, { Key: 'k2', VersionId: 'v' }] } },
  ],
};

test('what goes in comes out, type for type, with schemas as people and generators write them', async () => {
  assert.ok(Object.keys(TOOLS).length >= 20);
  for (const [name, [schema, call, typed, changes]] of Object.entries(TOOLS)) {
    const form = new FormUnderTest(schema, call);
    assert.equal(parametersForm(schema as StoredSchema, call as ToolParameters).kind, 'fields', name);
    assert.deepEqual(form.change({}), {}, name);
    assert.deepEqual(form.change(typed), changes, name);
    const $schema = '$schema' in schema ? {} : { $schema: 'https://json-schema.org/draft/2020-12/schema' };
    const validated = await storedValidator({ ...$schema, ...schema } as StoredSchema)({ ...call, ...changes });
    assert.ok(validated.ok, `${name}: ${JSON.stringify(validated)}`);
  }
});
