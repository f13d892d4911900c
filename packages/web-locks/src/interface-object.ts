/** The members that the standard declares for an interface. */
export interface InterfaceMembers {
  readonly operations?: readonly string[];
  readonly attributes?: readonly string[];
}

/**
 * Gives a class the shape of a Web IDL interface: the named members are enumerable and `Symbol.toStringTag` is a data
 * property. All other members stay as the class has them, and no loop sees them.
 */
export function shapeInterface(
  interfaceClass: { readonly name: string; readonly prototype: object },
  { operations = [], attributes = [] }: InterfaceMembers,
): void {
  const { name, prototype } = interfaceClass;
  for (const member of [...operations, ...attributes]) {
    Object.defineProperty(prototype, member, { enumerable: true });
  }
  Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
}

/** The error of the constructors of the standard's interfaces, which nobody may call. */
export function illegalConstructor(): TypeError {
  return new TypeError('Illegal constructor');
}

/** The error of a member that was called on an object of another interface. */
export function illegalInvocation(): TypeError {
  return new TypeError('Illegal invocation');
}
