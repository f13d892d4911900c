import fs, { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';

/** A name in a folder that leads to something else now, bytes of a file, or what is on the disk from now on. */
type Step =
  | { readonly what: 'name'; readonly path: string; readonly to: number | 'folder' | undefined }
  | { readonly what: 'bytes'; readonly file: number; readonly text: string }
  | { readonly what: 'sync'; readonly of: number | string };

/** Files by their paths; `undefined`: a folder. */
type Tree = ReadonlyMap<string, string | undefined>;

/** Runs `act`, and records what it does to files and their names, through the functions of `node:fs` that it calls. */
export async function recorded(act: () => unknown): Promise<Step[]> {
  const steps: Step[] = [];
  const { mkdirSync: makeFolder, openSync, writeFileSync: write, fsyncSync, renameSync, rmSync } = fs;
  const original = { mkdirSync: makeFolder, openSync, writeFileSync: write, fsyncSync, renameSync, rmSync };
  const files = new Map<string, number>();
  /** The file or the folder that a descriptor leads to. */
  const open = new Map<number, number | string>();
  Object.assign(fs, {
    mkdirSync(path: string, options: fs.MakeDirectoryOptions) {
      const first = original.mkdirSync(path, options) as string | undefined;
      const made = [];
      for (let each = path; first !== undefined && each.length >= first.length; each = dirname(each))
        made.unshift(each);
      for (const each of made) steps.push({ what: 'name', path: each, to: 'folder' });
      return first;
    },
    openSync(path: string, flags: string) {
      const descriptor = original.openSync(path, flags);
      if (!flags.startsWith('w')) open.set(descriptor, files.get(path) ?? path);
      else {
        files.set(path, files.size);
        open.set(descriptor, files.size - 1);
        steps.push({ what: 'name', path, to: files.size - 1 });
      }
      return descriptor;
    },
    writeFileSync(descriptor: number, text: string) {
      original.writeFileSync(descriptor, text);
      steps.push({ what: 'bytes', file: open.get(descriptor) as number, text });
    },
    fsyncSync(descriptor: number) {
      original.fsyncSync(descriptor);
      steps.push({ what: 'sync', of: open.get(descriptor) as number | string });
    },
    renameSync(from: string, to: string) {
      original.renameSync(from, to);
      const file = files.get(from) as number;
      files.set(to, file);
      steps.push({ what: 'name', path: to, to: file }, { what: 'name', path: from, to: undefined });
    },
    rmSync(path: string, options: fs.RmOptions) {
      original.rmSync(path, options);
      steps.push({ what: 'name', path, to: undefined });
    },
  });
  syncBuiltinESMExports();
  try {
    await act();
  } finally {
    Object.assign(fs, original);
    syncBuiltinESMExports();
  }
  return steps;
}

/**
 * What a disk may have after a power cut that follows these steps. A name is there for certain once its folder was synced, bytes once their
 * file was; of all others any may be there and any may not, and a file that was not synced may be empty, zeros, or cut off.
 */
export function statesAfter(before: Tree, steps: readonly Step[]): Tree[] {
  const isSynced = (index: number, of: number | string): boolean =>
    steps.some((step, at) => at > index && step.what === 'sync' && step.of === of);
  const names = steps.flatMap((step, index) =>
    step.what === 'name' ? [{ ...step, isCertain: isSynced(index, dirname(step.path)) }] : [],
  );
  const pending = names.filter(({ isCertain }) => !isCertain);
  const states = new Map<string, Tree>();
  for (let chosen = 0; chosen < 2 ** pending.length; chosen += 1) {
    const paths = new Map<string, string | number | undefined>(before);
    for (const step of names) {
      const isThere = step.isCertain || (chosen & (1 << pending.indexOf(step))) !== 0;
      if (!isThere) continue;
      if (step.to === undefined) paths.delete(step.path);
      else paths.set(step.path, step.to === 'folder' ? undefined : step.to);
    }
    for (const variant of ['whole', 'empty', 'zeros', 'half'] as const) {
      const contents = (file: number): string => {
        const index = steps.findIndex((step) => step.what === 'bytes' && step.file === file);
        const step = steps[index];
        const text = step?.what === 'bytes' ? step.text : '';
        if (isSynced(index, file) || variant === 'whole') return text;
        return { empty: '', zeros: '\0'.repeat(text.length), half: text.slice(0, text.length / 2) }[variant];
      };
      const tree = new Map(
        [...paths]
          .filter(([path]) => isReachable(path, paths, before))
          .map(([path, at]) => [path, typeof at === 'number' ? contents(at) : at] as const),
      );
      states.set(JSON.stringify([...tree].sort(([one], [other]) => (one < other ? -1 : 1))), tree);
    }
  }
  return [...states.values()];
}

/** The tree below a folder, which is on the disk. */
export function treeOf(root: string): Tree {
  const paths = (readdirSync(root, { recursive: true }) as string[]).map((name) => join(root, name));
  return new Map([root, ...paths].map((path) => [path, textOf(path)]));
}

/** Puts a tree that began at `root` below another folder. */
export function plant(tree: Tree, root: string, at: string): void {
  for (const [path, text] of [...tree].sort(([one], [other]) => one.length - other.length)) {
    const here = at + path.slice(root.length);
    if (text === undefined) mkdirSync(here, { recursive: true });
    else writeFileSync(here, text);
  }
}

function textOf(path: string): string | undefined {
  return statSync(path).isDirectory() ? undefined : readFileSync(path, 'utf8');
}

function isReachable(path: string, paths: ReadonlyMap<string, unknown>, before: Tree): boolean {
  const [root = ''] = before.keys();
  if (path === root || basename(path) === '') return true;
  return paths.has(dirname(path)) && isReachable(dirname(path), paths, before);
}
