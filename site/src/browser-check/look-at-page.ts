import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

interface AxeViolation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly target: readonly unknown[]; readonly failureSummary?: string }[];
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const NODES_SHOWN = 3;

/** Whether the page that is shown is wider than the window. */
export async function excessOf(page: Page): Promise<string[]> {
  const excess = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  return excess > 0 ? [`is ${excess} pixels wider than the window`] : [];
}

/** The longest line of code that fits into a page at the width of a desk. */
const LINE_LENGTH = 110;

/** Blocks of code of which a part is out of sight, although no line is longer than {@link LINE_LENGTH}. */
export async function cutCodeOf(page: Page): Promise<string[]> {
  const cut = await page.evaluate((length) => {
    return [...document.querySelectorAll('.vp-doc pre')].flatMap((block) => {
      const lines = (block.textContent ?? '').split('\n');
      const longest = lines.reduce((a, b) => (b.length > a.length ? b : a), '');
      const hidden = block.scrollWidth - block.clientWidth;
      return hidden > 1 && longest.length <= length
        ? [`${hidden} pixels of "${longest.trim().slice(0, 60)}"`]
        : [];
    });
  }, LINE_LENGTH);
  return cut.map((what) => `cuts code: ${what}`);
}

/** Whether the page that is shown is higher than this. */
export async function heightAbove(page: Page, limit: number): Promise<string[]> {
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  return height > limit ? [`is ${height} pixels high, of at most ${limit}`] : [];
}

/** What axe-core finds on the page that is shown for who cannot see it well, or has no mouse. */
export async function objectionsTo(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  // The function runs in the page, where the line above has defined `axe`.
  const violations = await page.evaluate(async () => {
    const { axe: checker } = globalThis as unknown as {
      axe: { run(context: unknown, options: unknown): Promise<{ violations: AxeViolation[] }> };
    };
    const result = await checker.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'],
      resultTypes: ['violations'],
    });
    return result.violations;
  });
  return violations.map(({ id, help, nodes }) => {
    const where = nodes.slice(0, NODES_SHOWN).map(({ target, failureSummary = '' }) => {
      return `\n    ${target.join(' ')}: ${failureSummary.split('\n').slice(1).join(' ').trim()}`;
    });
    return `${id}: ${help}, ${nodes.length} times${where.join('')}`;
  });
}
