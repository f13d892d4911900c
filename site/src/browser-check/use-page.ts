import type { Page } from 'playwright-core';

/** What a reader does with the pages that answer; each rejects when the page does not. */
export const uses: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  'choosing-a-backend.html': async (page) => {
    const cards = page.locator('.backend-cards li');
    const all = await cards.count();
    await page.getByLabel('Several machines').check();
    await page.getByLabel('At once, when the holder was killed').check();
    await page.getByText('What is left', { exact: true }).waitFor();
    const left = await cards.locator('a').allTextContents();
    expect(left.join() === 'PostgreSQL advisory locks', `two answers left ${left.join(' and ')} of ${all}`);
  },

  'sizing.html': async (page) => {
    const share = async () => Number.parseFloat((await page.locator('.sizing-share').textContent()) ?? '');
    const before = await share();
    await page.getByLabel('Acquires a second').fill('5000');
    await page.waitForFunction(
      (text) => document.querySelector('.sizing-share')?.textContent !== text,
      `${before.toFixed(1)} %`,
    );
    expect((await share()) > before, 'more acquires cost the server no more');
  },

  'compatibility.html': useFilter,

  'playground.html': async (page) => {
    const tab = (index: number) => page.locator('.playground-tab').nth(index);
    const press = (index: number, name: string) => tab(index).getByRole('button', { name }).click();
    const becomes = (index: number, state: string) =>
      page.locator(`.playground-tab:nth-child(${index + 1})[data-state=${state}]`).waitFor();
    await press(0, 'Acquire');
    await becomes(0, 'holding');
    await press(1, 'Acquire');
    await becomes(1, 'waiting');
    await press(0, 'Freeze');
    await becomes(1, 'holding');
    await press(0, 'Resume');
    await becomes(0, 'lost');
  },

  'index.html': async (page) => {
    await page.keyboard.press('Control+k');
    const input = page.locator('#localsearch-input');
    // The build tries all words on the index; here, the box uses the same weights.
    for (const [word, found] of [
      ['fencing', 'guides/fencing'],
      ['NX', 'backends/redis'],
    ] as const) {
      await input.fill(word);
      await page.locator(`#localsearch-list li:first-child a[href*="/${found}.html"]`).waitFor();
    }
    await page.keyboard.press('Escape');
    await page.locator('#localsearch-input').waitFor({ state: 'detached' });
  },
};

async function useFilter(page: Page): Promise<void> {
  const rows = page.locator('.vp-doc tbody tr:visible');
  const all = await rows.count();
  await page.getByLabel('Rows that contain').fill('fencing');
  await page.waitForFunction(
    (before) => document.querySelectorAll('.vp-doc tbody tr[hidden]').length > before / 2,
    all,
  );
  const left = await rows.count();
  expect(left > 0 && left < all / 2, `the filter left ${left} of ${all} rows`);
  await page.getByText('Columns:').click();
  await page.getByRole('button', { name: 'No columns' }).click();
  await page.getByLabel('memory', { exact: true }).check();
  const table = page.locator('.vp-doc table', { has: page.locator('th', { hasText: /^memory$/ }) }).first();
  const heads = await table.locator('th:visible').allTextContents();
  expect(heads.includes('memory') && !heads.includes('mysql'), `the columns are ${heads.join(', ')}`);
}

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
