// Types for the used parts of Swagger UI, which has none.
declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  export interface Call {
    url: string;
    headers: Record<string, string>;
    credentials?: RequestCredentials;
  }
  type Part = (props: Record<string, unknown>) => unknown;
  export interface System {
    React: { createElement(part: unknown, props?: object | null, ...children: unknown[]): unknown };
  }
  export interface LayoutProps {
    getComponent(name: string, container?: boolean | 'root'): Part;
    specSelectors: { loadingStatus(): string | undefined };
  }
  export interface Settings {
    domNode: Element;
    url: string;
    presets: unknown[];
    plugins: ((system: System) => { components: Record<string, (props: LayoutProps) => unknown> })[];
    layout: string;
    validatorUrl: null;
    docExpansion: 'none' | 'list' | 'full';
    defaultModelsExpandDepth: number;
    defaultModelExpandDepth: number;
    displayRequestDuration: boolean;
    filter: boolean;
    tryItOutEnabled: boolean;
    syntaxHighlight: { activated: boolean };
    requestInterceptor(call: Call): Call;
  }
  const SwaggerUI: { (settings: Settings): unknown; presets: { apis: unknown } };
  export default SwaggerUI;
}
