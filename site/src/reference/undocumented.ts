import { type DeclarationReflection, type ProjectReflection, ReflectionKind, type SomeType } from 'typedoc';

const SYMBOLS =
  ReflectionKind.Class |
  ReflectionKind.Interface |
  ReflectionKind.Function |
  ReflectionKind.TypeAlias |
  ReflectionKind.Variable |
  ReflectionKind.Enum;

/** A number whose name does not say what it counts needs a unit in its description. */
const UNIT_IN_NAME = /(Ms|Bytes|Seconds|Count|Size)$|^(max|min)[A-Z]/;
const UNIT_IN_TEXT =
  /\b(milliseconds?|ms|seconds?|bytes?|times|how many|number of|percent|share of|whole number|random choices)\b/i;

/** What the public interface does not say: a sentence for each symbol and option, the default and the unit of an option. */
export function undocumented(project: ProjectReflection): string[] {
  return (project.children ?? []).flatMap((module) =>
    (module.children ?? []).flatMap((symbol) => [
      ...(symbol.kindOf(SYMBOLS) && !hasSentence(symbol)
        ? [`${module.name}: ${symbol.name} has no sentence`]
        : []),
      ...(symbol.name.endsWith('Options') ? optionsOf(symbol) : []).flatMap((option) =>
        problemsOf(option).map((problem) => `${module.name}: ${symbol.name}.${option.name} ${problem}`),
      ),
    ]),
  );
}

function optionsOf(symbol: DeclarationReflection): readonly DeclarationReflection[] {
  const inType = symbol.type?.type === 'reflection' ? symbol.type.declaration.children : undefined;
  return (symbol.children ?? inType ?? []).filter(
    (option) => option.kindOf(ReflectionKind.Property) && option.inheritedFrom === undefined,
  );
}

function problemsOf(option: DeclarationReflection): string[] {
  const text = sentenceOf(option);
  const takesNumber = /\b(number|bigint)\b/.test(option.type?.toString() ?? '');
  return [
    ...(text === '' ? ['has no sentence'] : []),
    ...(option.flags.isOptional && isPlain(option.type) && !hasDefault(option)
      ? ['has no @defaultValue']
      : []),
    ...(takesNumber && !UNIT_IN_NAME.test(option.name) && !UNIT_IN_TEXT.test(text) ? ['has no unit'] : []),
  ];
}

/** Numbers, texts and truth values: where one is left out, something must be assumed. No callback or signal is assumed. */
function isPlain(type: SomeType | undefined): boolean {
  if (type?.type === 'union') return type.types.every(isPlain);
  return (
    type?.type === 'literal' || (type?.type === 'intrinsic' && type.name !== 'unknown' && type.name !== 'any')
  );
}

function hasDefault({ comment }: DeclarationReflection): boolean {
  return comment?.getTag('@defaultValue') !== undefined;
}

function hasSentence(symbol: DeclarationReflection): boolean {
  return (
    sentenceOf(symbol) !== '' ||
    (symbol.signatures ?? []).some(({ comment }) => (comment?.summary.length ?? 0) > 0)
  );
}

function sentenceOf({ comment }: DeclarationReflection): string {
  return (comment?.summary ?? [])
    .map(({ text }) => text)
    .join('')
    .trim();
}
