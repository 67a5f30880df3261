import * as assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 320, height: 640 };
/** More than any page has fields and links. */
const MAX_TABS = 100;

/**
 * Checks a page that is open in all forms that people see it in: no violation of axe's rules in light or dark, no sideways
 * scroll at 320 pixels. With `SVC_SCREENSHOTS=<folder>` it writes `<name>-1280.png` and `<name>-320.png`, and the dark ones.
 */
export async function assertPresentable(page: Page, name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await assertAccessible(page, `${name}, ${colorScheme}`);
    await screenshot(page, colorScheme === 'light' ? name : `${name}-dark`);
  }
  await page.setViewportSize(NARROW);
  await assertNoSidewaysScroll(page, name);
  await page.emulateMedia({ colorScheme: 'light' });
  await screenshot(page, name);
  await page.setViewportSize(WIDE);
}

/** Runs axe in a world of its own, where the page's Content-Security-Policy does not apply and nothing of the page changes. */
async function assertAccessible(page: Page, name: string): Promise<void> {
  const session = await page.context().newCDPSession(page);
  try {
    const { frameTree } = await session.send('Page.getFrameTree');
    const world = { frameId: frameTree.frame.id, worldName: 'axe' };
    const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', world);
    await session.send('Runtime.evaluate', { contextId, expression: await axeSource() });
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
      ...{ contextId, awaitPromise: true, returnByValue: true },
      expression: `axe.run({ resultTypes: ['violations'] }).then(({ violations, passes }) => ({
        violations: violations.flatMap(({ id, help, nodes }) => nodes.map(({ html }) => [id, help, html].join(': '))),
        rules: violations.length + passes.length,
      }))`,
    });
    assert.equal(exceptionDetails, undefined, name);
    assert.deepEqual(result.value.violations, [], name);
    assert.ok(result.value.rules > 5, `${name}: axe found nothing to check`);
  } finally {
    await session.detach();
  }
}

function axeSource(): Promise<string> {
  const require = createRequire(import.meta.url);
  return readFile(require.resolve('axe-core/axe.min.js'), 'utf8');
}

async function assertNoSidewaysScroll(page: Page, name: string): Promise<void> {
  const tooWide = await page.evaluate(`{
    const { scrollWidth, clientWidth } = document.documentElement;
    const all = scrollWidth > clientWidth ? [...document.querySelectorAll('html, body *')] : [];
    all.filter((one) => one.getBoundingClientRect().right > clientWidth || one.scrollWidth > clientWidth)
      .map((one) => one.outerHTML.slice(0, 200));
  }`);
  assert.deepEqual(tooWide, [], `${name} scrolls sideways`);
}

/** Presses Tab until `target` has the focus, which must then be visible. */
export async function tabTo(page: Page, target: Locator): Promise<void> {
  for (let presses = 0; presses < MAX_TABS; presses++) {
    await page.keyboard.press('Tab');
    if (!(await target.and(page.locator(':focus')).count())) continue;
    const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
    assert.notEqual(outline, 'none', 'the focus is not visible');
    return;
  }
  assert.fail(`Tab does not reach ${target}`);
}

/** The whole page, at its width at present, into the folder `SVC_SCREENSHOTS`; nothing without it. */
async function screenshot(page: Page, name: string): Promise<void> {
  const folder = process.env.SVC_SCREENSHOTS;
  if (folder === undefined || folder === '') return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}-${page.viewportSize()?.width}.png`), fullPage: true });
}
