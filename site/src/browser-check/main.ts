// Looks at the built site in Chromium, at the width of a phone and of a desk. Every document, and the largest pages of the reference: whether
// it is wider than the window, and code that is cut. The pages of AUDITED, in both themes: accessibility (axe-core), errors of scripts, and whether what answers a reader does.
// `--pictures FOLDER` writes what was seen of these; `--page NAME` looks at one of them alone.
import { globSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { findServer } from '@locks/test-servers';
import { type Browser, chromium, type Page } from 'playwright-core';
import { outputFolder } from '../repository.ts';
import { cutCodeOf, excessOf, heightAbove, objectionsTo } from './look-at-page.ts';
import { serveFolder } from './serve-folder.ts';
import { uses } from './use-page.ts';

const AUDITED = [
  'index.html',
  'getting-started.html',
  'choosing-a-backend.html',
  'compatibility.html',
  'guarantees.html',
  'benchmarks.html',
  'benchmarks/languages.html',
  'playground.html',
  'sizing.html',
  'spec.html',
  'backends/redis.html',
  'guides/fencing.html',
  'api/@locks/core/index.html',
  'api/@locks/core/interfaces/LockManager.html',
];
const WINDOWS = { phone: { width: 390, height: 844 }, desk: { width: 1_280, height: 900 } } as const;
const THEMES = ['light', 'dark'] as const;
/** A page of the reference is about one symbol. */
const REFERENCE_HEIGHT = 16_000;
/** Pages that one program writes by one pattern: of each folder the largest are looked at. */
const ALIKE = ['api/', 'source/'];
const LARGEST = 12;

type Window = keyof typeof WINDOWS;
type Theme = (typeof THEMES)[number];

const { values: options } = parseArgs({
  options: { pictures: { type: 'string' }, page: { type: 'string' } },
});
const built = globSync('**/*.html', { cwd: outputFolder }).map((file) => file.replaceAll('\\', '/'));
// Pages that answer, such as the guide for beginners, may not be written yet: they are looked at once they are.
const audited = AUDITED.filter((page) => built.includes(page) && (options.page ?? page) === page);
const absent = AUDITED.filter((page) => !built.includes(page));
const all = options.page === undefined ? pagesToMeasure(built) : [];

await using site = await serveFolder(outputFolder);
const browser = await chromium.launch({ executablePath: findServer('chromium') });
const problems: string[] = [];
const started = performance.now();
try {
  // In two tabs beside each other: what answers waits for times to pass.
  const found = await Promise.all([layoutOf(browser, all), auditsOf(browser, audited)]);
  problems.push(...found.flat());
} finally {
  await browser.close();
}
for (const problem of problems) console.error(problem);
const missing = absent.length > 0 ? `, not written yet: ${absent.join(', ')}` : '';
console.log(
  `${all.length} pages, ${audited.length} of them in both themes${missing}, ${problems.length} problems, ${((performance.now() - started) / 1_000).toFixed(0)} s`,
);
process.exitCode = problems.length > 0 ? 1 : 0;

function pagesToMeasure(pages: readonly string[]): string[] {
  const size = (page: string) => statSync(join(outputFolder, page)).size;
  const alike = ALIKE.flatMap((folder) =>
    pages
      .filter((page) => page.startsWith(folder))
      .sort((a, b) => size(b) - size(a))
      .slice(0, LARGEST),
  );
  const others = pages.filter(
    (page) => page !== '404.html' && !ALIKE.some((folder) => page.startsWith(folder)),
  );
  return [...others.sort(), ...alike];
}

/** Each page is loaded once, without its scripts, which do not change how wide anything is. */
async function layoutOf(chrome: Browser, paths: readonly string[]): Promise<string[]> {
  const context = await chrome.newContext({ javaScriptEnabled: false, reducedMotion: 'reduce' });
  const found: string[] = [];
  try {
    await context.route('**/*.js', (route) => route.abort());
    const page = await context.newPage();
    for (const path of paths) {
      const note = (window: Window, seen: readonly string[]) =>
        found.push(...seen.map((problem) => `${path}, ${window}: ${problem}`));
      await page.setViewportSize(WINDOWS.phone);
      await page.goto(`${site.url}/${path}`, { waitUntil: 'load' });
      note('phone', await excessOf(page));
      await page.setViewportSize(WINDOWS.desk);
      note('desk', [...(await excessOf(page)), ...(await cutCodeOf(page))]);
      if (path.startsWith('api/')) note('desk', await heightAbove(page, REFERENCE_HEIGHT));
    }
  } finally {
    await context.close();
  }
  return found;
}

async function auditsOf(chrome: Browser, paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) found.push(...(await auditOf(chrome, path)));
  return found;
}

/** A page is loaded once, and once more for a reader who uses it at the other width. */
async function auditOf(chrome: Browser, path: string): Promise<string[]> {
  const found: string[] = [];
  const context = await chrome.newContext({ reducedMotion: 'reduce' });
  try {
    const page = await context.newPage();
    page.on('pageerror', (error) => found.push(`a script failed: ${error.message}`));
    page.on('console', (message) => {
      if (message.type() === 'error') found.push(`the console says: ${message.text()}`);
    });
    await show(page, 'phone', 'light');
    await open(page, path);
    // Layout differs by the width and colours by the theme: these two views have each of them.
    found.push(...(await excessOf(page)), ...(await objectionsTo(page)));
    await picture(page, path, 'phone', 'light');
    if (options.pictures !== undefined) {
      await show(page, 'phone', 'dark');
      await picture(page, path, 'phone', 'dark');
      await show(page, 'desk', 'light');
      await picture(page, path, 'desk', 'light');
    }
    await show(page, 'desk', 'dark');
    found.push(...(await excessOf(page)), ...(await objectionsTo(page)));
    await picture(page, path, 'desk', 'dark');
    const use = uses[path];
    if (use !== undefined) {
      const tried = (error: unknown) => void found.push(`using it: ${String(error)}`);
      await use(page).catch(tried);
      await show(page, 'phone', 'light');
      await open(page, path);
      await use(page).catch(tried);
    }
  } finally {
    await context.close();
  }
  return found.map((problem) => `${path}: ${problem}`);
}

async function open(page: Page, path: string): Promise<void> {
  await page.goto(`${site.url}/${path}`, { waitUntil: 'load' });
  // From now on the page answers.
  await page.waitForFunction(() => '__vue_app__' in (document.querySelector('#app') ?? {}));
}

/** The page follows the window and the system's theme without being loaded again. */
async function show(page: Page, window: Window, theme: Theme): Promise<void> {
  await page.setViewportSize(WINDOWS[window]);
  await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
  await page.waitForFunction(
    (isDark) =>
      document.querySelector('#app') === null ||
      document.documentElement.classList.contains('dark') === isDark,
    theme === 'dark',
  );
}

async function picture(page: Page, path: string, window: Window, theme: Theme): Promise<void> {
  if (options.pictures === undefined) return;
  mkdirSync(options.pictures, { recursive: true });
  const name = `${path.replace(/\.html$/, '').replaceAll('/', '-')}-${window}-${theme}.png`;
  await page.screenshot({ path: join(options.pictures, name) });
}
