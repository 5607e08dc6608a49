declare module 'virtual:samples' {
  /** Language → English name of a concept → its name in that language. */
  const samples: Record<string, Record<string, string>>;
  export default samples;
}

declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  export default function SwaggerUI(options: {
    domNode: Element;
    url: string;
    validatorUrl: null;
    docExpansion: 'none';
    defaultModelsExpandDepth: number;
    displayRequestDuration: boolean;
    persistAuthorization: boolean;
    tryItOutEnabled: boolean;
  }): void;
}
