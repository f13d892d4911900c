// Looks at the built site in Chromium, at the width of a phone and of a desk, in both themes: accessibility (axe-core), pages that are wider
// than the window, errors of scripts, and whether the pages that answer a reader do. `--pictures FOLDER` writes what was seen.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findServer } from '@locks/test-servers';
import { type Browser, chromium } from 'playwright-core';
import { outputFolder } from '../repository.ts';
import { excessOf, objectionsTo } from './look-at-page.ts';
import { serveFolder } from './serve-folder.ts';
import { uses } from './use-page.ts';

const PAGES = [
  'index.html',
  'choosing-a-backend.html',
  'compatibility.html',
  'guarantees.html',
  'benchmarks.html',
  'benchmarks/languages.html',
  'playground.html',
  'spec.html',
  'backends/redis.html',
  'guides/fencing.html',
  'api/@locks/core.html',
];
const WINDOWS = { phone: { width: 390, height: 844 }, desk: { width: 1_280, height: 900 } } as const;
const THEMES = ['light', 'dark'] as const;

interface View {
  readonly page: string;
  readonly window: keyof typeof WINDOWS;
  readonly theme: (typeof THEMES)[number];
}

const { values: options } = parseArgs({ options: { pictures: { type: 'string' } } });
const views: View[] = PAGES.flatMap((page) =>
  (Object.keys(WINDOWS) as View['window'][]).flatMap((window) =>
    THEMES.map((theme) => ({ page, window, theme })),
  ),
);

await using site = await serveFolder(outputFolder);
const browser = await chromium.launch({ executablePath: findServer('chromium') });
let failed = 0;
try {
  for (const view of views) {
    const problems = await problemsOfView(browser, view);
    for (const problem of problems) console.error(`${view.page}, ${view.window}, ${view.theme}: ${problem}`);
    failed += problems.length;
  }
} finally {
  await browser.close();
}
console.log(`${PAGES.length} pages, ${views.length} views, ${failed} problems`);
process.exitCode = failed > 0 ? 1 : 0;

async function problemsOfView(chrome: Browser, { page: path, window, theme }: View): Promise<string[]> {
  const context = await chrome.newContext({
    viewport: WINDOWS[window],
    colorScheme: theme,
    reducedMotion: 'reduce',
  });
  const problems: string[] = [];
  try {
    const page = await context.newPage();
    page.on('pageerror', (error) => problems.push(`a script failed: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(`the console says: ${message.text()}`);
    });
    await page.goto(`${site.url}/${path}`, { waitUntil: 'load' });
    // From now on the page answers.
    await page.waitForFunction(() => '__vue_app__' in (document.querySelector('#app') ?? {}));
    problems.push(...(await excessOf(page)));
    // Layout differs by the width and colours by the theme: these two views have each of them.
    if ((window === 'phone') === (theme === 'light')) problems.push(...(await objectionsTo(page)));
    if (options.pictures !== undefined) {
      mkdirSync(options.pictures, { recursive: true });
      const name = `${path.replace(/\.html$/, '').replaceAll('/', '-')}-${window}-${theme}.png`;
      await page.screenshot({ path: join(options.pictures, name) });
    }
    // What a page does is the same in both themes.
    if (theme === 'light') {
      await uses[path]?.(page).catch((error: unknown) => problems.push(`using it: ${String(error)}`));
    }
  } finally {
    await context.close();
  }
  return problems;
}
