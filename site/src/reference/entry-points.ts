import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readRepositoryFile, root } from '../repository.ts';

/** What a user imports: `@locks/core`, `@locks/core/backend`. */
export interface EntryPoint {
  readonly name: string;
  /** Its built types, relative to the root. */
  readonly types: string;
}

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, string | { readonly default: string }>>;
}

/** Every entry point of every published package. */
export function readEntryPoints(): EntryPoint[] {
  return readdirSync(join(root, 'packages'))
    .filter((folder) => existsSync(join(root, 'packages', folder, 'package.json')))
    .flatMap((folder) => {
      const manifest = JSON.parse(readRepositoryFile(`packages/${folder}/package.json`)) as Manifest;
      if (manifest.private === true) return [];
      return Object.entries(manifest.exports ?? {}).flatMap(([path, target]) => {
        if (typeof target === 'string') return [];
        const types = `packages/${folder}/${target.default.slice(2).replace(/\.js$/, '.d.ts')}`;
        return [{ name: manifest.name + path.slice(1), types }];
      });
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
