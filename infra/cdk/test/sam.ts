/** The SAM template as CloudFormation would have it for given parameters: conditions are decided, `Fn::If` is taken. */
import { readFileSync } from "node:fs";
import * as path from "node:path";
import { type CollectionTag, parse, type ScalarTag, YAMLMap, YAMLSeq } from "yaml";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Fields = { [key: string]: Json };
export type Resource = { Type: string; Properties: Fields };
export type Resources = Record<string, Resource>;

/** From `dist/test`. */
const FILE = path.join(__dirname, "../../../template.yaml");

const long = (tag: string) => (tag === "Ref" || tag === "Condition" ? tag : `Fn::${tag}`);
const names = ["Ref", "Condition", "If", "Not", "And", "Or", "Equals", "Sub", "GetAtt", "Join", "FindInMap"];
const tags = names.flatMap((name): (ScalarTag | CollectionTag)[] => [
  { tag: `!${name}`, resolve: (text: string) => ({ [long(name)]: name === "GetAtt" ? text.split(".") : text }) },
  { tag: `!${name}`, collection: "seq", resolve: (seq) => ({ [long(name)]: seq instanceof YAMLSeq ? seq.toJSON() : seq }) as never },
  { tag: `!${name}`, collection: "map", resolve: (map) => ({ [long(name)]: map instanceof YAMLMap ? map.toJSON() : map }) as never },
]);

interface Template {
  Parameters: Record<string, { Default?: Json }>;
  Conditions: Fields;
  Mappings: Fields;
  Globals: { Function: Fields };
  Resources: Record<string, Resource & { Condition?: string }>;
}

export function readTemplate(): Template {
  return parse(readFileSync(FILE, "utf8"), { customTags: (all) => [...all, ...tags] }) as Template;
}

/** What is left of a value that was left out. */
const NOTHING = Symbol("AWS::NoValue");

class Evaluator {
  constructor(
    private readonly template: Template,
    private readonly given: Record<string, string | number>,
  ) {}

  parameter(name: string): Json | undefined {
    return this.given[name] ?? this.template.Parameters[name]?.Default;
  }

  holds(condition: string): boolean {
    return this.truth(this.template.Conditions[condition] as Json);
  }

  private truth(of: Json): boolean {
    const [operator, operands] = Object.entries(of as Fields)[0] as [string, Json];
    const list = operands as Json[];
    switch (operator) {
      case "Condition":
        return this.holds(operands as string);
      case "Fn::Not":
        return !this.truth(list[0] as Json);
      case "Fn::And":
        return list.every((one) => this.truth(one));
      case "Fn::Or":
        return list.some((one) => this.truth(one));
      case "Fn::Equals":
        return String(this.value(list[0] as Json)) === String(this.value(list[1] as Json));
      default:
        throw new Error(`a condition of ${operator}`);
    }
  }

  value(of: Json): Json {
    const taken = this.taken(of);
    if (taken === NOTHING) {
      throw new Error("nothing, where a value is needed");
    }
    return taken;
  }

  private taken(of: Json): Json | typeof NOTHING {
    if (Array.isArray(of)) {
      return of.map((one) => this.taken(one)).filter((one) => one !== NOTHING) as Json[];
    }
    if (typeof of !== "object" || of === null) {
      return of;
    }
    if ("Ref" in of) {
      const name = of.Ref as string;
      return name === "AWS::NoValue" ? NOTHING : (this.parameter(name) ?? of);
    }
    if ("Fn::If" in of) {
      const [condition, yes, no] = of["Fn::If"] as [string, Json, Json];
      return this.taken(this.holds(condition) ? yes : no);
    }
    const fields = Object.entries(of).map(([key, one]) => [key, this.taken(one)] as const);
    return Object.fromEntries(fields.filter(([, one]) => one !== NOTHING)) as Fields;
  }

  resources(): Resources {
    const all = Object.entries(this.template.Resources).filter(([, { Condition }]) => !Condition || this.holds(Condition));
    return Object.fromEntries(
      all.map(([id, { Type, Properties }]) => [id, { Type, Properties: this.value(Properties ?? {}) as Fields }]),
    );
  }

  globals(): Fields {
    return this.value(this.template.Globals.Function) as Fields;
  }
}

/** The resources for these parameters, with what functions have of `Globals`. */
export function samResources(given: Record<string, string | number>): Resources {
  const evaluator = new Evaluator(readTemplate(), given);
  const globals = evaluator.globals();
  const resources = evaluator.resources();
  for (const resource of Object.values(resources).filter(({ Type }) => Type === "AWS::Serverless::Function")) {
    const variables = (of: Fields) => ((of.Environment as Fields | undefined)?.Variables ?? {}) as Fields;
    const all = { ...variables(globals), ...variables(resource.Properties) };
    resource.Properties = { ...globals, ...resource.Properties, Environment: { Variables: all } };
  }
  return resources;
}
