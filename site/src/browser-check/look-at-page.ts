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

/** What axe-core finds on the page that is shown for who cannot see it well, or has no mouse. */
export async function objectionsTo(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  // The function runs in the page, where the line above has defined `axe`.
  const violations = await page.evaluate(async () => {
    const { axe: checker } = globalThis as unknown as {
      axe: { run(context: unknown, options: unknown): Promise<{ violations: AxeViolation[] }> };
    };
    const result = await checker.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] });
    return result.violations;
  });
  return violations.map(({ id, help, nodes }) => {
    const where = nodes.slice(0, NODES_SHOWN).map(({ target, failureSummary = '' }) => {
      return `\n    ${target.join(' ')}: ${failureSummary.split('\n').slice(1).join(' ').trim()}`;
    });
    return `${id}: ${help}, ${nodes.length} times${where.join('')}`;
  });
}
