package jpg

var inverse8, inverse4 = inverse8Generic, inverse4Generic
