import { once } from 'node:events';
import { OWN_LOCK, WAIT_NAMES } from '@locks/core/backend';
import { findServer, waitUntil } from '@locks/test-servers';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Program } from '../test/program.ts';
import { TestRedis } from '../test/started-stores.ts';

const redis = new TestRedis();
const programs: Program[] = [];
let browser: Browser;
let page: Page;
/** What the page reported: errors of its script, and what its content security policy refused. */
let reported: string[];

beforeAll(async () => {
  browser = await chromium.launch({ executablePath: findServer('chromium') });
});
afterEach(async () => {
  await page.close();
  for (const { child } of programs) child.kill('SIGINT');
  await Promise.all(programs.splice(0).map(({ outcome }) => outcome));
  expect(reported).toEqual([]);
});
afterAll(() => browser.close());

async function open(...args: string[]): Promise<void> {
  const program = new Program(['board', '--every', '100ms', ...args], redis.url);
  programs.push(program);
  const [chunk] = (await once(program.child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  page = await browser.newPage({ viewport: { width: 1_000, height: 560 }, colorScheme: 'light' });
  reported = [];
  page.on('pageerror', (error) => reported.push(String(error)));
  page.on('console', (message) => void (message.type() === 'error' && reported.push(message.text())));
  await page.goto(String(chunk).trim());
}

/** The row of a lock in which this text stands. */
const row = (name: string, text: string) =>
  page.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }), hasText: text });

describe('locks board in Chromium', () => {
  it('shows who holds, who waits, since when, and what was lost, and goes on doing so', async () => {
    const nightly = await redis.locks.lock('nightly-report').acquire({ label: 'worker-1:4711' });
    const waiter = redis.locks.lock('nightly-report').acquire({ label: 'worker-2:815', waitMs: 60_000 });
    const third = redis.locks.lock('nightly-report').acquire({ label: 'worker-3:16', waitMs: 60_000 });
    await using _reader = await redis.locks.readWriteLock('catalogue').read.acquire({ label: 'web-1:33' });
    await open();
    await row('nightly-report', 'worker-2:815').waitFor();
    await row('nightly-report', 'worker-3:16').filter({ hasText: 'waits, 2.' }).waitFor();
    expect(await row('nightly-report', 'worker-2:815').textContent()).toMatch(/waits, 1\..*exclusive.* s$/);
    expect(await row('nightly-report', 'worker-1:4711').textContent()).toMatch(/held.*exclusive\d+.* s.* s$/);
    const since = () => row('nightly-report', 'worker-1:4711').getByRole('cell').nth(4).textContent();
    const before = await since();
    await waitUntil(async () => (await since()) !== before, { what: 'the time to go on' });
    // A row of a waiter becomes one of a holder.
    await redis.locks.forceRelease('nightly-report');
    await expect(nightly.release()).rejects.toMatchObject({ code: 'LOCK_LOST' });
    await row('nightly-report', 'worker-2:815').filter({ hasText: 'held' }).waitFor();
    // Long enough that a busy machine looks while less than half of it is left.
    const lost = await redis.locks
      .lock('import')
      .acquire({ label: 'importer', ttlMs: 4_000, renewal: 'manual' });
    await row('import', 'lost: its ttl ran out').waitFor();
    await page.getByRole('status').filter({ hasText: 'Lost: import of importer' }).waitFor();
    const picture = process.env['LOCKS_BOARD_PICTURE'];
    if (picture !== undefined) await page.screenshot({ path: picture });
    await (await waiter).release();
    await (await third).release();
    await lost.release().catch(() => undefined);
  });

  it('has no button without --allow-release', async () => {
    await using _lease = await redis.locks.lock('kept').acquire({ label: 'keeper' });
    await open();
    await row('kept', 'keeper').waitFor();
    expect(await page.getByRole('button').allTextContents()).toEqual(['Pause']);
  });

  it('ends a hold by the keyboard alone, after asking', async () => {
    const lease = await redis.locks.lock('stuck').acquire({ label: 'a dead worker' });
    await using _other = await redis.locks.lock('work').acquire();
    await open('--allow-release');
    const button = page.getByRole('button', { name: 'End the hold of stuck by a dead worker' });
    await button.focus();
    // The page reads the state several times, and the focus stays.
    const summary = page.locator('#summary');
    const before = await summary.textContent();
    await waitUntil(async () => (await summary.textContent()) !== before, { what: 'the next look' });
    expect(await button.evaluate((one) => one === one.ownerDocument.activeElement)).toBe(true);
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog', { name: 'End this hold?' });
    await dialog.filter({ hasText: 'stuck, held by a dead worker' }).waitFor();
    // What is chosen at first does no harm; Escape closes it too.
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    await page.keyboard.press('Enter');
    await dialog.waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    expect(await redis.locks.isLocked('stuck')).toBe(true);
    await page.keyboard.press('Enter');
    await dialog.waitFor();
    const picture = process.env['LOCKS_BOARD_PICTURE'];
    if (picture !== undefined) await page.screenshot({ path: picture.replace('.png', '-ask.png') });
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('status').filter({ hasText: 'Ended: stuck of a dead worker' }).waitFor();
    await row('stuck', 'ended by force from here').waitFor();
    expect(await redis.locks.isLocked('stuck')).toBe(false);
    expect(await redis.locks.isLocked('work')).toBe(true);
    await lease.release().catch(() => undefined);
  });

  it('names and labels are text, whatever stands in them', async () => {
    const name = '<img src=x onerror=alert(1)>\u202Eevil';
    await using _lease = await redis.locks.lock(name).acquire({ label: '<b>bold</b>' });
    await open();
    await row('<img src=x onerror=alert(1)>\\u{202e}evil', '<b>bold</b>').waitFor();
    expect(await page.locator('main img, main b').count()).toBe(0);
  });

  it('stands still while it is paused', async () => {
    await open('later');
    await page.getByText('Nothing is held or waited for.').waitFor();
    const pause = page.getByRole('button', { name: 'Pause', pressed: false });
    await pause.click();
    await page.getByRole('button', { name: 'Pause', pressed: true }).waitFor();
    await using _lease = await redis.locks.lock('later').acquire();
    const asked = () => page.waitForResponse((response) => response.url().endsWith('/state'));
    await asked();
    await asked();
    expect(await row('later', 'held').count()).toBe(0);
    await page.getByRole('button', { name: 'Pause' }).click();
    await row('later', 'held').waitFor();
  });

  it('is read on a phone without scrolling sideways, and no id is broken into single letters', async () => {
    await using _lease = await redis.locks.lock('nightly-report').acquire({ label: 'worker-1:4711' });
    await open('--allow-release');
    await row('nightly-report', 'worker-1:4711').waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    const who = row('nightly-report', 'worker-1:4711').getByRole('cell').nth(1);
    const lines = await who.evaluate((cell) => {
      const range = cell.ownerDocument.createRange();
      range.selectNodeContents(cell);
      return new Set([...range.getClientRects()].map(({ top }) => top)).size;
    });
    expect(lines).toBeLessThanOrEqual(2);
    // What a row is to a screen reader does not change with the width.
    expect(await page.locator('#held').ariaSnapshot()).toMatch(
      /- table[^]*- row[^]*- rowheader "nightly-report"/,
    );
    const picture = process.env['LOCKS_BOARD_PICTURE'];
    if (picture !== undefined) await page.screenshot({ path: picture.replace('.png', '-phone.png') });
  });

  it('every control and table has a name, and the page a language and headings', async () => {
    await using _lease = await redis.locks.lock('named').acquire({ label: 'a holder' });
    await open('--allow-release');
    await row('named', 'a holder').waitFor();
    expect(await page.locator('html').getAttribute('lang')).toBe('en');
    expect(await page.getByRole('heading').allTextContents()).toEqual([
      'Locks',
      'Held and waited for',
      'Ended since this command runs',
    ]);
    const tree = await page.locator('body').ariaSnapshot();
    expect(tree).not.toMatch(/- (button|table|region)$/m);
    expect(tree).toMatch(/columnheader "Since"/);
    expect(tree).toMatch(/rowheader "named"/);
  });

  it('draws who waits for whom, and a circle so that one sees it', async () => {
    const { locks } = redis;
    const tell = async (held: string, label: string, waitsFor?: string) => {
      const lease = await locks.lock(held).acquire({ label });
      if (waitsFor === undefined) return;
      const name = `${WAIT_NAMES}${lease.acquisitionId}`;
      await locks
        .lock(name, { [OWN_LOCK]: true } as object)
        .acquire({ label: `1 000000000.${lease.acquisitionId} x ${waitsFor}` });
    };
    await tell('invoices', 'nightly:815');
    await tell('stock', 'web-1:4711', 'invoices');
    await tell('accounts/anna', 'transfer-1:33', 'accounts/ben');
    await tell('accounts/ben', 'transfer-2:16', 'accounts/anna');
    await open('--allow-release');
    const region = page.getByRole('region', { name: 'Who waits for whom' });
    const line = (name: string) => region.getByRole('listitem').filter({ hasText: new RegExp(`^${name} `) });
    await line('stock').filter({ hasText: 'held by web-1:4711' }).waitFor();
    expect(await line('stock').textContent()).toMatch(/waits for invoices$/);
    expect(await line('accounts/ben').textContent()).toMatch(/waits for accounts\/anna: a circle$/);
    expect(await region.getByRole('listitem').count()).toBe(4);
    // Two arrows of the circle, in its colour, and one of the chain.
    expect(await page.locator('#arrows .curve').count()).toBe(3);
    expect(await page.locator('#arrows .curve.circle').count()).toBe(2);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const colour = (selector: string) =>
        page
          .locator(selector)
          .first()
          .evaluate((one) => one.ownerDocument.defaultView?.getComputedStyle(one).stroke);
      expect(await colour('.curve.circle')).not.toBe(await colour('.curve:not(.circle)'));
      const picture = process.env['LOCKS_BOARD_PICTURE'];
      if (picture !== undefined)
        await page.screenshot({ path: picture.replace('.png', `-waits-${colorScheme}.png`), fullPage: true });
    }
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390);
    const picture = process.env['LOCKS_BOARD_PICTURE'];
    if (picture !== undefined)
      await page.screenshot({ path: picture.replace('.png', '-waits-phone.png'), fullPage: true });
    // The picture ends with the waits.
    for await (const { name } of locks.list(WAIT_NAMES)) await locks.forceRelease(name);
    await region.waitFor({ state: 'hidden' });
  });
});
