import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the repository. */
export const root = fileURLToPath(new URL('../../', import.meta.url));

/** The folder of this package. */
export const siteFolder = join(root, 'site');

/** Where the build writes the pages for VitePress; ignored by git. */
export const pagesFolder = join(siteFolder, 'generated/pages');

/** The site itself; ignored by git. */
export const outputFolder = join(siteFolder, 'dist');

/** @param path relative to the root, with `/` */
export function readRepositoryFile(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** Writes data that the pages import as `#generated/NAME`. */
export function writeGenerated(name: string, data: unknown): void {
  mkdirSync(join(siteFolder, 'generated'), { recursive: true });
  writeFileSync(join(siteFolder, 'generated', name), JSON.stringify(data));
}

/** Where the sources are, for people; empty until `repository` is set in the root's package.json, as a release needs it. */
export function repositoryUrl(manifest: string = readRepositoryFile('package.json')): string {
  const { repository } = JSON.parse(manifest) as { repository?: string | { readonly url: string } };
  const url = typeof repository === 'string' ? repository : (repository?.url ?? '');
  return url
    .replace(/^github:/, 'https://github.com/')
    .replace(/^git\+/, '')
    .replace(/\.git$/, '');
}
