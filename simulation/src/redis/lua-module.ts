import wasmoon from 'wasmoon-lua5.1';

/** A pointer to a Lua state or into the memory of the interpreter. */
export type Pointer = number;

/** What is used of Lua's C interface, as WebAssembly exports it. */
export interface LuaModule {
  readonly HEAPU8: Uint8Array;
  readonly HEAPU32: Uint32Array;
  addFunction(callback: (state: Pointer) => number, signature: string): Pointer;
  _malloc(size: number): Pointer;
  _free(pointer: Pointer): void;
  _luaL_newstate(): Pointer;
  _luaopen_base(state: Pointer): number;
  _luaopen_string(state: Pointer): number;
  _luaopen_table(state: Pointer): number;
  _luaopen_math(state: Pointer): number;
  _luaL_openlibs(state: Pointer): void;
  _luaL_loadbuffer(state: Pointer, source: Pointer, size: number, name: Pointer): number;
  _luaL_ref(state: Pointer, table: number): number;
  _lua_createtable(state: Pointer, items: number, fields: number): void;
  _lua_error(state: Pointer): number;
  _lua_getfield(state: Pointer, index: number, name: Pointer): void;
  _lua_gettop(state: Pointer): number;
  _lua_objlen(state: Pointer, index: number): number;
  _lua_pcall(state: Pointer, count: number, results: number, handler: number): number;
  _lua_pushboolean(state: Pointer, value: number): void;
  _lua_pushcclosure(state: Pointer, callback: Pointer, upvalues: number): void;
  _lua_pushlstring(state: Pointer, text: Pointer, length: number): void;
  _lua_pushnumber(state: Pointer, value: number): void;
  _lua_rawgeti(state: Pointer, index: number, at: number): void;
  _lua_rawseti(state: Pointer, index: number, at: number): void;
  _lua_setfield(state: Pointer, index: number, name: Pointer): void;
  _lua_settop(state: Pointer, index: number): void;
  _lua_toboolean(state: Pointer, index: number): number;
  _lua_tolstring(state: Pointer, index: number, length: Pointer): Pointer;
  _lua_tonumber(state: Pointer, index: number): number;
  _lua_type(state: Pointer, index: number): number;
}

export const LUA_REGISTRY = -10000;
export const LUA_GLOBALS = -10002;

/** The types of Lua values, as `lua_type` numbers them. */
export const LuaType = { nil: 0, boolean: 1, number: 3, string: 4, table: 5 } as const;

/** Loads the interpreter. Each call gives one of its own. */
export async function loadLua(): Promise<LuaModule> {
  const { module } = await wasmoon.LuaApi.initialize();
  return module as unknown as LuaModule;
}
