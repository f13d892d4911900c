import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pagesFolder } from '../repository.ts';
import type { Reference } from './read-reference.ts';

export interface ReferencePage {
  readonly title: string;
  readonly route: string;
}

/** Writes a page for each entry point and the list of all, and returns them in that order. */
export async function writeReferencePages({ application, project }: Reference): Promise<ReferencePage[]> {
  const folder = join(pagesFolder, 'api');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  application.options.setValue('out', folder);
  await application.generateOutputs(project);
  if (application.logger.hasErrors()) throw new Error('TypeDoc could not write the reference');
  return markdownFiles(folder).map((file) => ({
    title: /^# (.+)$/m.exec(readFileSync(join(folder, file), 'utf8'))?.[1] ?? file,
    route: `api/${file.replace(/\.md$/, '').replace(/(^|\/)index$/, '$1')}`,
  }));
}

function markdownFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.md'))
    .sort();
}
