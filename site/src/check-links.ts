import { globSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/**
 * The links of built pages that lead nowhere: to a file that does not exist, or to an anchor that its page does not have.
 * @param folder the built site
 * @param base the path under which it is served, `/` at both ends
 */
export function deadLinks(folder: string, base: string): string[] {
  const files = new Set(globSync('**/*', { cwd: folder }).map((file) => file.replaceAll('\\', '/')));
  const pages = [...files].filter((file) => file.endsWith('.html'));
  const content = new Map(pages.map((page) => [page, readFileSync(join(folder, page), 'utf8')]));
  const anchors = new Map(pages.map((page) => [page, anchorsOf(content.get(page) ?? '')]));
  return pages.flatMap((page) =>
    linksOf(content.get(page) ?? '').flatMap((link) => {
      const problem = problemOf(link, page, { files, anchors, base });
      return problem === undefined ? [] : [`${page}: ${link}: ${problem}`];
    }),
  );
}

interface BuiltSite {
  readonly files: ReadonlySet<string>;
  readonly anchors: ReadonlyMap<string, ReadonlySet<string>>;
  readonly base: string;
}

function problemOf(link: string, page: string, { files, anchors, base }: BuiltSite): string | undefined {
  const [address = '', anchor = ''] = link.split('#');
  const path = address.split('?', 1)[0] ?? '';
  if (path.startsWith('/') && !path.startsWith(base)) return `is outside of ${base}`;
  const absolute = path.startsWith('/') ? path.slice(base.length) : posix.join(posix.dirname(page), path);
  const target = path === '' ? page : fileOf(decodeURI(absolute), files);
  if (target === undefined) return 'no such page';
  if (anchor === '' || !target.endsWith('.html')) return undefined;
  return anchors.get(target)?.has(decodeURIComponent(anchor)) ? undefined : 'no such anchor';
}

function fileOf(path: string, files: ReadonlySet<string>): string | undefined {
  const normal = posix
    .normalize(path)
    .replace(/^\.?\/?/, '')
    .replace(/\/$/, '');
  return [normal, `${normal}.html`, posix.join(normal, 'index.html')].find((file) => files.has(file));
}

function linksOf(html: string): string[] {
  const links = [...html.matchAll(/<(?:a|link|img|script)\b[^>]*?\s(?:href|src)="([^"]*)"/g)];
  return [...new Set(links.map(([, link = '']) => decodeEntities(link)))].filter(
    (link) => link !== '' && !/^(?:[a-z]+:|\/\/)/.test(link),
  );
}

function anchorsOf(html: string): Set<string> {
  return new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => decodeEntities(id)));
}

function decodeEntities(text: string): string {
  return text
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}
