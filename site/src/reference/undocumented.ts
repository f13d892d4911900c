import {
  type Comment,
  type DeclarationReflection,
  type ProjectReflection,
  ReflectionKind,
  type SomeType,
} from 'typedoc';

const SYMBOLS =
  ReflectionKind.Class |
  ReflectionKind.Interface |
  ReflectionKind.Function |
  ReflectionKind.TypeAlias |
  ReflectionKind.Variable |
  ReflectionKind.Enum;

/** A number whose name does not say what it counts needs a unit in its description. */
const UNIT_IN_NAME = /(Ms|Bytes|Seconds|Count|Size|[tT]oken)$|^(max|min)[A-Z]/;
const UNIT_IN_TEXT =
  /\b(milliseconds?|ms|seconds?|bytes?|times|how many|number of|percent|share of|whole number|random choices)\b/i;

/** Types that hold options. */
const OPTIONS = /(Options|Settings)$|^(Visibility|FencedUpdate|FaultScope|HarnessDefinition)$/;

/** The parts of other libraries' clients that an adapter uses: their members are documented there. */
const SHAPES_OF_CLIENTS =
  /^(IoredisClient|Node(Redis|ZooKeeper)Client|NativeZooKeeperClient|NodeClientError|(Node|Native)Stat)$/;

/** What users implement themselves: how it fails is theirs. */
const IMPLEMENTED_BY_USERS = /^(LockBackend|SlotStore|TextStore|LocksModuleOptionsFactory)$/;

/** Entry points for authors of backends and tests: their errors reach users through core. */
const FOR_AUTHORS = /\/(backend|rules|conformance)(\/|$)|^@locks\/redis-protocol$/;

/**
 * What the public interface does not say: a sentence for each symbol, method and option, the default and the unit of an option, and the errors
 * of everything that answers later. {@link silentThrows} looks for the errors of what answers at once. Another member may be all in its name.
 */
export function undocumented(project: ProjectReflection): string[] {
  return (project.children ?? []).flatMap((module) =>
    (module.children ?? []).flatMap((symbol) =>
      [
        ...(symbol.kindOf(SYMBOLS) && !hasSentence(symbol) ? [`${symbol.name} has no sentence`] : []),
        ...membersOf(symbol)
          .filter((member) => member.kindOf(ReflectionKind.Method) || OPTIONS.test(symbol.name))
          .filter((member) => !hasSentence(member))
          .map(({ name }) => `${symbol.name}.${name} has no sentence`),
        ...(OPTIONS.test(symbol.name) ? optionsOf(symbol) : []).flatMap((option) =>
          problemsOf(option).map((problem) => `${symbol.name}.${option.name} ${problem}`),
        ),
        ...(FOR_AUTHORS.test(module.name) || IMPLEMENTED_BY_USERS.test(symbol.name) ? [] : errorsOf(symbol)),
      ].map((problem) => `${module.name}: ${problem}`),
    ),
  );
}

/** Without members of one value, which says what they are. */
function membersOf(symbol: DeclarationReflection): readonly DeclarationReflection[] {
  if (SHAPES_OF_CLIENTS.test(symbol.name)) return [];
  return ownOf(symbol).filter((member) => member.type?.type !== 'literal' && !isAbsent(member));
}

/** `uri?: undefined`: what excludes the other members of a union. */
function isAbsent({ type }: DeclarationReflection): boolean {
  return type?.type === 'intrinsic' && /^(undefined|never)$/.test(type.name);
}

function ownOf(symbol: DeclarationReflection): readonly DeclarationReflection[] {
  return (symbol.children ?? inType(symbol.type)).filter((member) => member.inheritedFrom === undefined);
}

/** The members that are written in a type: of `{ … } & ({ … } | { … })` all. */
function inType(type: SomeType | undefined): readonly DeclarationReflection[] {
  if (type?.type === 'reflection') return type.declaration.children ?? [];
  return type?.type === 'intersection' || type?.type === 'union' ? type.types.flatMap(inType) : [];
}

/** A function or method that gives a promise says with what it rejects, in one of its signatures, or that it never does. */
function errorsOf(symbol: DeclarationReflection): string[] {
  if (SHAPES_OF_CLIENTS.test(symbol.name)) return [];
  return [symbol, ...ownOf(symbol)].flatMap((one) => {
    const signatures = one.kindOf(ReflectionKind.Function | ReflectionKind.Method)
      ? (one.signatures ?? [])
      : [];
    if (!signatures.some(({ type }) => /^(Promise|AsyncIterable)</.test(type?.toString() ?? ''))) return [];
    const name = one === symbol ? symbol.name : `${symbol.name}.${one.name}`;
    const throws = signatures.flatMap(({ comment }) => comment?.getTags('@throws') ?? []);
    const texts = throws.map(({ content }) => content.map(({ text }) => text).join(''));
    const never = signatures.some(({ comment }) => /\bnever rejects\b/i.test(textOf(comment)));
    if (texts.length === 0) return never ? [] : [`${name} does not say with what it rejects`];
    const vague = texts.filter((text) => /\bLockError\b/.test(text) && !/`LOCK_|\bas `/.test(text));
    return vague.map(() => `${name} names no code of its LockError`);
  });
}

function optionsOf(symbol: DeclarationReflection): readonly DeclarationReflection[] {
  return ownOf(symbol).filter((option) => option.kindOf(ReflectionKind.Property) && !isAbsent(option));
}

function problemsOf(option: DeclarationReflection): string[] {
  const text = textOf(option.comment);
  const takesNumber = /\b(number|bigint)\b/.test(option.type?.toString() ?? '');
  return [
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

/** A sentence of its own, or of one of its signatures. */
function hasSentence({ comment, signatures = [], getSignature }: DeclarationReflection): boolean {
  return [comment, getSignature?.comment, ...signatures.map((one) => one.comment)].some(
    (one) => textOf(one) !== '',
  );
}

function textOf(comment: Comment | undefined): string {
  return (comment?.summary ?? [])
    .map(({ text }) => text)
    .join('')
    .trim();
}
