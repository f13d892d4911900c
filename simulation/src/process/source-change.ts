/** A change of one source file, for an error that is planted. */
export interface SourceChange {
  /** Relative to `packages/`; of a script of Redis, the file in `redis-protocol/src/scripts`. */
  readonly file: string;
  /** Stands in the file; the first place is changed. */
  readonly from: string;
  readonly to: string;
}

/** Where the scripts of Redis stand together, as they are sent. */
export const GENERATED_SCRIPTS = 'redis-protocol/src/generated/scripts.ts';

/** The file that a process loads for the file of a change. */
export function loadedFile({ file }: SourceChange): string {
  return file.endsWith('.lua') ? GENERATED_SCRIPTS : file;
}

/** The text of a loaded file with the changes in it. */
export function changed(contents: string, changes: readonly SourceChange[]): string {
  let text = contents;
  for (const change of changes) text = changedBy(text, change);
  return changes.some(({ file }) => file.endsWith('.lua')) ? text + NAME_AGAIN : text;
}

/** Servers know a script by its hash. */
const NAME_AGAIN = `
import { createHash } from 'node:crypto';
for (const script of Object.values(scripts)) (script as any).sha1 = createHash('sha1').update(script.source).digest('hex');
`;

function changedBy(text: string, { file, from, to }: SourceChange): string {
  const isScript = file.endsWith('.lua');
  const [start, end] = isScript ? placeOfScript(text, file) : [0, text.length];
  const found = isScript ? embedded(from) : from;
  const at = text.indexOf(found, start);
  if (at < 0 || at + found.length > end) throw new Error(`${file} has no ${JSON.stringify(from)}`);
  return text.slice(0, at) + (isScript ? embedded(to) : to) + text.slice(at + found.length);
}

/** Where the lines of one Lua file stand in the generated file. */
function placeOfScript(text: string, file: string): readonly [start: number, end: number] {
  const name = (file.split('/').at(-1) ?? '')
    .replace('.lua', '')
    .replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  const [begin, end] = file.includes('/fragments/')
    ? [`const ${name}Fragment =`, "';\n"]
    : [`\n  ${name}: {`, '\n  },'];
  const start = text.indexOf(begin);
  if (start < 0) throw new Error(`the generated scripts have no ${file}`);
  return [start, text.indexOf(end, start)];
}

/** Lua as `generate.mjs` of `@locks/redis-protocol` embeds it: without what the interpreter ignores, in a literal. */
function embedded(lines: string): string {
  const text = lines
    .split('\n')
    .map((line) => compact(line.trim()))
    .join('\n');
  return text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n');
}

function compact(line: string): string {
  const parts = line.split(/('[^']*')/);
  return parts
    .map((part, at) => (at % 2 ? part : part.replaceAll(/ *([=~<>+*/,{}()]|\.\.) */g, '$1')))
    .join('');
}
