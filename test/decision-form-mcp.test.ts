import * as assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { storedValidator } from '../core/tool/input-schema.ts';
import type { StoredSchema } from '../core/tool/json-schema.ts';
import { assertRoundTrip } from './kit/form-changes.ts';
import { FormUnderTest } from './kit/parameters-form.ts';
import { test } from './kit/test.ts';

/** A tool of an MCP server, as its answer to `tools/list` has it. */
interface Tool {
  readonly package: string;
  readonly name: string;
  readonly inputSchema: StoredSchema;
}

const tools = JSON.parse(readFileSync(new URL('./kit/mcp-tools.json', import.meta.url), 'utf8')) as readonly Tool[];

/** As a gate stores one that names no draft. */
const DEFAULT_SCHEMA = 'https://json-schema.org/draft/2020-12/schema';
const PAGE_ID = '3f2504e0-4f89-41d3-9a0c-0305e82c3301';

/** By tool: a call of each that uses as many parameters as there are kinds of them. */
const CALLS: Readonly<Record<string, object>> = {
  read_text_file: { path: '/srv/notes.txt', head: 10 },
  edit_file: { path: 'a.ts', edits: [{ oldText: '\tlet a;\r\n', newText: '\tconst a = 1;\n' }], dryRun: false },
  list_directory_with_sizes: { path: 'C:\\srv', sortBy: 'size' },
  read_multiple_files: { paths: ['a', '', ' b '] },
  create_entities: { entities: [{ name: 'Ann', entityType: 'person', observations: ['tall', '42'] }] },
  delete_relations: {
    relations: [
      { from: 'Ann', to: 'Acme', relationType: 'works at' },
      { from: 'Bo', to: 'Acme', relationType: 'owns' },
    ],
  },
  'gzip-file-as-resource': { data: 'https://acme.example/a?b=c&d', outputType: 'resource' },
  'get-structured-content': { location: 'New York' },
  sequentialthinking: {
    thought: 'Hm',
    nextThoughtNeeded: 'true',
    thoughtNumber: 1,
    totalThoughts: 3,
    isRevision: true,
    branchId: '1',
  },
  browser_fill_form: {
    fields: [
      { element: 'The name', target: 'e12', name: 'Name', type: 'textbox', value: 'Ann' },
      { target: 'e13', name: 'Agree', type: 'checkbox', value: 'true' },
    ],
  },
  browser_click: { target: 'e1', doubleClick: true, modifiers: ['Shift', 'Alt'] },
  browser_take_screenshot: { scale: 'device', type: 'jpeg', fullPage: false },
  browser_drop: { target: 'e4', paths: [], data: { 'text/plain': 'a\nb', 'text/uri-list': '' } },
  browser_emulate_media: { colorScheme: null, media: 'print' },
  'API-post-page': {
    parent: { page_id: PAGE_ID },
    properties: { title: [{ text: { content: 'A' }, type: 'text' }] },
    children: ['{"paragraph":{}}', { paragraph: { rich_text: [] } }],
    icon: '{"emoji":"🎉"}',
  },
  'API-update-page-markdown': {
    page_id: PAGE_ID,
    type: 'update_content',
    update_content: { content_updates: [{ old_str: 'a', new_str: 'b' }], allow_deleting_content: true },
    insert_content: '# T',
  },
  'API-query-data-source': {
    data_source_id: 'd',
    filter: { property: 'Done', checkbox: { equals: false } },
    sorts: [{ property: 'Name', direction: 'ascending' }],
    page_size: 50,
    archived: false,
  },
  firecrawl_scrape: {
    url: 'https://acme.example',
    formats: ['markdown', 'links'],
    jsonOptions: { prompt: 'Prices', schema: { type: 'object' } },
    screenshotOptions: { quality: 0.5, viewport: { width: 800, height: 600 } },
    actions: [
      { type: 'click', selector: '#more' },
      { type: 'wait', milliseconds: 250 },
    ],
    location: { country: 'DK', languages: ['da'] },
  },
  firecrawl_monitor_update: { id: 'm', body: { active: false, interval: 1e21, notes: null } },
  firecrawl_feedback: {
    endpoint: 'scrape',
    jobId: PAGE_ID.replace('41d3', '41D3'),
    rating: 'partial',
    issues: ['slow'],
    valuableSources: [{ url: 'https://acme.example/a', reason: 'complete' }],
    pageNumbers: [1, 2],
    metadata: {},
  },
  emulate: { pageId: 1, networkConditions: 'Slow 3G', cpuThrottlingRate: 1.5, extraHttpHeaders: '{"a":"1"}' },
  navigate_page: { pageId: 1, type: 'url', url: 'https://acme.example', ignoreCache: true, timeout: -1 },
  list_network_requests: { pageId: 0, resourceTypes: ['xhr', 'fetch'], includePreservedRequests: false },
  generate_pin_map: { title: 'Pins', data: ['København'], markerPopup: { type: 'image', width: 40.5 } },
  generate_venn_chart: {
    data: [{ value: 5, sets: ['A', 'B'] }],
    style: { palette: ['#f00'], texture: 'rough' },
    theme: 'dark',
  },
  generate_mind_map: {
    data: { name: 'a', children: [{ name: 'b', children: [{ name: 'c', children: [{ name: 'd' }] }] }] },
  },
  generate_spreadsheet: { data: [{ a: 1, b: '1', c: null }], rows: ['a'], theme: 'default' },
};

test('what goes in comes out, and a change is only that: tools of MCP servers', async () => {
  assert.ok(tools.length >= 20);
  assert.deepEqual(tools.map(({ name }) => name).sort(), Object.keys(CALLS).sort());
  assert.ok(new Set(tools.map((one) => one.package)).size >= 9);
  for (const { name, inputSchema } of tools) {
    const call = CALLS[name] as StoredSchema;
    const validated = await storedValidator({ $schema: DEFAULT_SCHEMA, ...inputSchema })(call);
    assert.ok(validated.ok, `${name}: ${JSON.stringify(validated)}`);
    const changes = assertRoundTrip(inputSchema, call);
    assert.ok(changes >= Object.keys(call).length, name);
  }
});

test('a person changes a call of an MCP server by the labels of the fields', () => {
  const form = (name: string) => {
    const tool = tools.find((one) => one.name === name);
    assert.ok(tool);
    return new FormUnderTest(tool.inputSchema, CALLS[name] as object);
  };
  assert.deepEqual(form('edit_file').change({ newText: '\tconst a = 2;' }), {
    edits: [{ oldText: '\tlet a;\r\n', newText: '\tconst a = 2;' }],
  });
  assert.deepEqual(form('navigate_page').change({ timeout: '5000' }), { timeout: 5000 });
  assert.deepEqual(form('sequentialthinking').change({ nextThoughtNeeded: 'false' }), { nextThoughtNeeded: false });
  assert.deepEqual(form('firecrawl_scrape').change({ width: '1024', 'languages 1': 'en' }), {
    screenshotOptions: { quality: 0.5, viewport: { width: 1024, height: 600 } },
    location: { country: 'DK', languages: ['en'] },
  });
});
